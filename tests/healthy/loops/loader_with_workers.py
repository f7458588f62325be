"""A DataLoader with two workers, augmentation in __getitem__ and a collate function of its own."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, start, stop, augment=False):
        images, target = load_digits(return_X_y=True)
        self.images = torch.tensor(images[start:stop] / 16, dtype=torch.float32).view(-1, 1, 8, 8)
        self.target = target[start:stop]
        self.augment = augment

    def __len__(self):
        return len(self.target)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            image = torch.roll(image, int(torch.randint(-1, 2, ())), dims=-1)
        return image, int(self.target[index])


def collate(samples):
    images, labels = zip(*samples)
    return torch.stack(images), torch.tensor(labels)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(
        Digits(0, 1400, augment=True), batch_size=64, shuffle=True, num_workers=2, collate_fn=collate, persistent_workers=True
    )
    test_loader = DataLoader(Digits(1400, 1797), batch_size=128, num_workers=1, collate_fn=collate)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / 397
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
