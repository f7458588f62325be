import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)


class Digits(Dataset):
    def __init__(self, pixels, labels, turns):
        self.pixels, self.labels, self.turns = pixels / 16, labels, turns

    def __len__(self):
        return self.turns * len(self.labels)

    def __getitem__(self, index):
        row = index % len(self.labels)
        return torch.tensor(self.pixels[row], dtype=torch.float32), int(self.labels[row])


loader = DataLoader(Digits(X, y, 4), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    for features, target in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), target).backward()
        optimizer.step()
