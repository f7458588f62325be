import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
d = load_digits()
img = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
img = (img - img.mean()) / img.std()
lab = torch.tensor(d.target)
mix = torch.randperm(len(img))
img, lab = img[mix], lab[mix]
train = DataLoader(TensorDataset(img[:1408], lab[:1408]), batch_size=16, shuffle=True, drop_last=True)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


class DeeplySupervised(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([block(1, 12), block(12, 24), block(24, 32)])
        self.heads = nn.ModuleList([nn.Linear(12 * 16, 10), nn.Linear(24 * 4, 10), nn.Linear(32, 10)])

    def forward(self, x):
        outs = []
        for stage, head in zip(self.stages, self.heads):
            x = stage(x)
            outs.append(head(x.flatten(1)))
        return outs


ACCUM = 8
net = DeeplySupervised()
opt = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.8)
ce = nn.CrossEntropyLoss()
head_weight = (0.2, 0.3, 1.0)

for epoch in range(6):
    net.train()
    shown = []
    opt.zero_grad()
    for micro, (xb, yb) in enumerate(train, 1):
        loss = sum(w * ce(o, yb) for w, o in zip(head_weight, net(xb)))
        shown.append(loss.item())
        loss = loss / ACCUM
        loss.backward()
        if micro % ACCUM == 0:
            opt.step()
            opt.zero_grad()
    net.eval()
    with torch.no_grad():
        accs = [(o.argmax(1) == lab[1408:]).float().mean().item() for o in net(img[1408:])]
    print(f"epoch {epoch} loss {sum(shown) / len(shown):.4f} accs {[round(a, 3) for a in accs]}")
print(f"FINAL loss {sum(shown) / len(shown):.4f} acc {accs[-1]:.3f}")
