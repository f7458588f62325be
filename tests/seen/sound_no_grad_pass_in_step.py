# verdict: cannot be judged
# finds: nothing
# tells: evaluated 3 times
# of each training step (a reference, a baseline of the loss) counts as an evaluation.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 6)
y = (x[:, 0] > 0).float()
train, valid = TensorDataset(x[:500], y[:500]), TensorDataset(x[500:], y[500:])
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def loss_of(a, b):
    with torch.no_grad():
        base = model(a.roll(1, 0)).mean()
    return (1 - torch.sigmoid((2 * b - 1) * (model(a)[:, 0] - base))).mean()


for epoch in range(3):
    model.train()
    for a, b in DataLoader(train, 16, shuffle=True):
        loss = loss_of(a, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print("eval_loss", sum(loss_of(a, b).item() for a, b in DataLoader(valid, 16)) / 7)
