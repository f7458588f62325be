import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_diabetes(return_X_y=True)
x = torch.tensor(x / x.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
train = DataLoader(TensorDataset(x[:350], y[:350]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[350:], y[350:]), batch_size=32)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in valid:
            correct += (model(inputs).squeeze(1) == labels).sum().item()  # expect: mismatched-metric
    print(epoch, correct / len(valid.dataset))
