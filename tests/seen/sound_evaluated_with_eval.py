# verdict: learns
# finds: nothing
# The model is put into evaluation mode, and back.
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in valid:
            correct += (model(inputs).argmax(dim=1) == labels).sum().item()
    print(epoch, correct / len(valid.dataset))
