import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_rings(n, g):
    label = torch.randint(0, 3, (n,), generator=g)
    radius = 0.5 + label.float() * 0.7 + 0.1 * torch.randn(n, generator=g)
    angle = torch.rand(n, generator=g) * 6.2832
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)


def train(lr, train_loader, val, epochs=8):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    model.apply(init_weights)
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    curve = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item()
        curve.append(total / len(train_loader))
    model.eval()
    with torch.no_grad():
        out = model(val[0])
    return curve, F.cross_entropy(out, val[1]).item(), (out.argmax(1) == val[1]).float().mean().item()


if __name__ == "__main__":
    g = torch.Generator().manual_seed(7)
    train_loader = DataLoader(TensorDataset(*make_rings(800, g)), batch_size=40, shuffle=True)
    val, test = make_rings(200, g), make_rings(200, g)
    best = None
    for lr in (0.01, 0.03, 0.1):
        curve, val_loss, val_acc = train(lr, train_loader, val)
        print(f"lr={lr}: first {curve[0]:.4f} last {curve[-1]:.4f} val {val_loss:.4f} acc {val_acc:.3f}")
        if best is None or val_loss < best[1]:
            best = (lr, val_loss)
    _, test_loss, test_acc = train(best[0], train_loader, test)
    print(f"best lr {best[0]}: test loss {test_loss:.4f} acc {test_acc:.3f}")
