"""Friedman's regression problem; one full batch a step, targets standardized."""

import torch
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
X, y = make_friedman1(n_samples=800, noise=0.5, random_state=0)
x_scaler, y_scaler = StandardScaler(), StandardScaler()
X = x_scaler.fit_transform(X)
y = y_scaler.fit_transform(y.reshape(-1, 1))
X_train, X_test = (torch.tensor(part, dtype=torch.float32) for part in (X[:600], X[600:]))
y_train, y_test = (torch.tensor(part, dtype=torch.float32) for part in (y[:600], y[600:]))


class Regressor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = torch.nn.Linear(10, 64)
        self.hidden2 = torch.nn.Linear(64, 32)
        self.output = torch.nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.output(x)


model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss_fn = torch.nn.MSELoss()
for epoch in range(300):
    y_pred = model(X_train)
    loss = loss_fn(y_pred, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 50 == 0:
        model.eval()
        with torch.no_grad():
            test = loss_fn(model(X_test), y_test)
        model.train()
        print(f"Epoch [{epoch + 1}/300], Loss: {loss.item():.4f}, test: {test.item():.4f}")
