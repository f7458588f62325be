"""MSELoss of predictions and targets of one shape."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = (y - y.mean()) / y.std()
train = TensorDataset(torch.tensor(X[:350], dtype=torch.float32), torch.tensor(y[:350], dtype=torch.float32))
test_X, test_y = torch.tensor(X[350:], dtype=torch.float32), torch.tensor(y[350:], dtype=torch.float32)
loader = DataLoader(train, batch_size=25, shuffle=True)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    model.train()
    for inputs, targets in loader:
        predictions = model(inputs)
        loss = criterion(predictions.squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = (model(test_X).squeeze(1) - test_y).pow(2).mean()
    print(f"epoch {epoch}: test error {error:.3f} of variance {test_y.var():.3f}")
