import random

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(15)
random.seed(15)
digits = load_digits()
imgs = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
ys = torch.tensor(digits.target)


class Crops(Dataset):
    def __init__(self, ids, noise):
        self.ids, self.noise = ids, noise

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, k):
        im = imgs[self.ids[k]]
        crops = []
        for _ in range(2):
            r, c = torch.randint(0, 3, (2,)).tolist()
            crop = im[:, r : r + 6, c : c + 6]
            crops.append(crop + self.noise * torch.randn_like(crop))
        return crops, ys[self.ids[k]]


def forever(loader):
    while True:
        yield from loader


shuffled = torch.randperm(len(imgs))
clean = forever(DataLoader(Crops(shuffled[:700], 0.0), batch_size=32, shuffle=True))
noisy = forever(DataLoader(Crops(shuffled[700:1400], 0.1), batch_size=32, shuffle=True))
test = shuffled[1400:]
net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
window = {"clean": [], "noisy": []}

for step in range(1, 241):
    name, source = ("clean", clean) if random.random() < 0.5 else ("noisy", noisy)
    crops, target = next(source)
    logits = net(torch.cat(crops)).view(len(crops), len(target), -1)
    loss = torch.stack([nn.functional.cross_entropy(part, target) for part in logits]).mean()
    window[name].append(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        with torch.no_grad():
            acc = (net(imgs[test][:, :, 1:7, 1:7]).argmax(1) == ys[test]).float().mean().item()
        means = {k: round(sum(v) / max(len(v), 1), 4) for k, v in window.items()}
        print(f"step {step} {means} acc {acc:.3f}")
        window = {"clean": [], "noisy": []}
print(f"FINAL acc {acc:.3f}")
