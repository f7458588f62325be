import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(11)
a, b = make_friedman1(1200, noise=0.3, random_state=0)
x = torch.tensor(a, dtype=torch.float32)
t = torch.tensor(b, dtype=torch.float32)
t = (t - t.mean()) / t.std()
train_set, val_set = random_split(TensorDataset(x, t), [1000, 200])
loader = DataLoader(train_set, batch_size=50, shuffle=True)

net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))


def trainer(model, batches, lr):
    """Trains for ever; hands out the loss of every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_fn = nn.MSELoss()
    while True:
        for xb, yb in batches:
            pred = model(xb).squeeze(-1)
            loss = loss_fn(pred, yb)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            yield loss.item()


def validate():
    xs, ys = map(torch.stack, zip(*val_set))
    with torch.no_grad():
        return (net(xs).squeeze(-1) - ys).square().mean().item()


gen = trainer(net, loader, 5e-3)
window = []
for step, value in enumerate(gen, 1):
    window.append(value)
    if step % 100 == 0:
        print(f"step {step:4d} train {sum(window) / len(window):.4f} val mse {validate():.4f}")
        window.clear()
    if step >= 600:
        gen.close()
print(f"FINAL val mse {validate():.4f}")
