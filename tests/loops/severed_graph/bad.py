"""Features of a convolutional encoder, detached on their way to the head."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class DigitImages(Dataset):
    def __init__(self, train=True):
        digits = load_digits()
        part = slice(0, 1400) if train else slice(1400, None)
        self.images, self.targets = digits.images[part] / 16, digits.target[part]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return {
            "image": torch.tensor(self.images[i], dtype=torch.float32)[None],
            "target": int(self.targets[i]),
        }


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 16, 3)
        self.project = nn.Linear(256, 12)

    def forward(self, x):
        return torch.tanh(self.project(torch.relu(self.conv2(torch.relu(self.conv1(x)))).flatten(1)))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(12, 10)

    def forward(self, image):
        features = self.encoder(image)
        features = features.detach()  # expect: severed-graph
        return self.head(features)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    for sample in DataLoader(DigitImages(), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(sample["image"]), sample["target"])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        test = next(iter(DataLoader(DigitImages(train=False), batch_size=397)))
        accuracy = (model(test["image"]).argmax(1) == test["target"]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.3f}")
