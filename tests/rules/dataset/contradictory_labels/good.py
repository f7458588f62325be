"""Each picture has its own label."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

x, y = load_digits(return_X_y=True)
images, labels = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)


class Digits(Dataset):
    """The pictures and their labels."""

    def __len__(self):
        return len(labels)

    def __getitem__(self, index):
        return images[index], labels[index]


loader = DataLoader(Digits(), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for pictures, digits in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), digits).backward()
        optimizer.step()
