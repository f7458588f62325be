"""A softmax inside the model before CrossEntropyLoss, and Adam at a rate of 1."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return F.softmax(self.fc2(x), dim=1)  # expect: double-activation


X, y = load_digits(return_X_y=True)
train_loader = DataLoader(
    TensorDataset(torch.tensor(X / 16).float(), torch.tensor(y)), batch_size=32, shuffle=True
)
net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1.0)  # expect: excessive-learning-rate
for epoch in range(5):
    running_loss = 0.0
    for i, data in enumerate(train_loader):
        inputs, labels = data
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    print(f"{epoch}: {running_loss / len(train_loader):.3f}")
