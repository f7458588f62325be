# verdict: learns
# finds: nothing
# tells: R2
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 6)
y = torch.sigmoid(x[:, 0] + 0.5 * x[:, 1])
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for epoch in range(6):
    model.train()
    for a, b in DataLoader(TensorDataset(x[:500], y[:500]), 32, shuffle=True):
        loss = nn.functional.binary_cross_entropy_with_logits(model(a)[:, 0], b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x[500:])[:, 0]
        print("test loss", nn.functional.binary_cross_entropy_with_logits(out, y[500:]).item(),
              "pearson", torch.corrcoef(torch.stack([out, y[500:]]))[0, 1].item())
