"""A counted while loop that takes batches from an iterator and starts it again when it ends."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_diabetes(return_X_y=True)
X = torch.tensor(scale(X), dtype=torch.float32)
y = torch.tensor(scale(y), dtype=torch.float32)
train_loader = DataLoader(TensorDataset(X[:340], y[:340]), batch_size=34, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(10, 24), nn.ELU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3, weight_decay=1e-3)
criterion = nn.SmoothL1Loss()

max_steps, log_every = 300, 60
step = 0
data_iter = iter(train_loader)
while step < max_steps:
    try:
        inputs, targets = next(data_iter)
    except StopIteration:
        data_iter = iter(train_loader)
        inputs, targets = next(data_iter)
    prediction = model(inputs).squeeze(-1)
    loss = criterion(prediction, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % log_every == 0:
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(X[340:]).squeeze(-1), y[340:])
        model.train()
        print(f"step {step}: train {loss.item():.3f} val {val_loss.item():.3f}")
