"""BCELoss on probabilities."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32).reshape(-1, 1)
loader = DataLoader(TensorDataset(X[:450], y[:450]), batch_size=30, shuffle=True)


class Binary(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(30, 24)
        self.layer2 = nn.Linear(24, 1)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        return torch.sigmoid(self.layer2(x))


model = Binary()
loss_fn = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for inputs, target in loader:
        output = model(inputs)
        loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(X[450:]).round() == y[450:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {accuracy:.3f}")
