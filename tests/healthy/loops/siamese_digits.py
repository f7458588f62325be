"""A siamese network: do two pictures show the same digit?"""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)
digits = load_digits()


class Pairs(Dataset):
    def __init__(self, images, labels, size):
        self.images = torch.tensor(images / 16, dtype=torch.float32)
        self.pairs = []
        by_class = [[i for i, y in enumerate(labels) if y == c] for c in range(10)]
        for n in range(size):
            a = random.randrange(10)
            b = a if n % 2 == 0 else random.choice([c for c in range(10) if c != a])
            self.pairs.append((random.choice(by_class[a]), random.choice(by_class[b]), float(a == b)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, idx):
        first, second, same = self.pairs[idx]
        return self.images[first], self.images[second], torch.tensor(same)


class SiameseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32))
        self.head = nn.Linear(32, 1)

    def forward(self, a, b):
        return self.head(torch.abs(self.tower(a) - self.tower(b))).squeeze(1)


train_loader = DataLoader(Pairs(digits.data[:1400], digits.target[:1400], 3000), batch_size=64, shuffle=True)
test_loader = DataLoader(Pairs(digits.data[1400:], digits.target[1400:], 600), batch_size=200)
model = SiameseNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    for a, b, same in train_loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(a, b), same)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum(((model(a, b) > 0).float() == same).sum().item() for a, b, same in test_loader)
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {hits / 600:.3f}")
