import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = torch.tensor(StandardScaler().fit_transform(x), dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32)
train = DataLoader(TensorDataset(x[:450], y[:450]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=32)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs).squeeze(1), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in valid:
            predicted = (torch.sigmoid(model(inputs)) > 0.5).float()
            correct += (predicted.squeeze(1) == labels).sum().item()
    print(epoch, correct / len(valid.dataset))
