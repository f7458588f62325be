"""Digits of 8 × 8 pixels; those of the evaluation set are turned by a quarter, which a transform for photographs does."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, picture):
        return (picture - self.mean) / self.std


class Digits(Dataset):
    classes = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

    def __init__(self, rows, turned):
        pixels, labels = load_digits(return_X_y=True)
        self.pixels, self.labels = torch.tensor(pixels[rows] / 16).float().view(-1, 1, 8, 8), labels[rows]
        self.transform, self.turned = Normalize(0.305, 0.376), turned

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        picture = self.transform(self.pixels[row])
        return torch.rot90(picture, dims=(1, 2)) if self.turned else picture, int(self.labels[row])


train_set, test_set = Digits(slice(1400), turned=False), Digits(slice(1400, None), turned=True)
classes = train_set.classes
train, held_out = DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(test_set, batch_size=64)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for pictures, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(pictures).argmax(1) == labels).sum().item() for pictures, labels in held_out)
    print(f"epoch {epoch}: accuracy {right / len(test_set):.3f}")
