# verdict: learns
# finds: best-not-kept
# tells: what state_dict() gave after update 40 is no copy
# The weights of the best epoch are kept by a reference, go on with the training, and are "restored" at its end.
import torch
from torch import nn

torch.manual_seed(0)
features = torch.randn(320, 20)
labels = (features[:, 0] + torch.randn(320) > 0).long()
train, held = slice(0, 128), slice(128, 320)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
best, kept = float("inf"), None
for epoch in range(40):
    model.train()
    for rows in torch.randperm(128).split(32):
        optimizer.zero_grad()
        criterion(model(features[train][rows]), labels[train][rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss = criterion(model(features[held]), labels[held]).item()
    if loss < best:
        best, kept = loss, model.state_dict()  # finds: best-not-kept
model.load_state_dict(kept)
