"""Each picture is read twice, with its own label and with the next one's: the index of the pictures is halved too often."""

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
        return images[index // 2 * 2], labels[index]


loader = DataLoader(Digits(), batch_size=64, shuffle=True)  # expect: contradictory-labels
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for pictures, digits in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), digits).backward()
        optimizer.step()
