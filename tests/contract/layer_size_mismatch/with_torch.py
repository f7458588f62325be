"""Pictures of digits, and a linear layer that expects more features than the convolution gives: a loop in plain torch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y)
train_set = TensorDataset(X, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3)
        self.head = nn.Linear(16 * 8 * 8, 10)  # expect: layer-size-mismatch

    def forward(self, x):
        hidden = torch.relu(self.conv(x))
        return self.head(hidden.flatten(1))


model = Net()
loader = DataLoader(train_set, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
