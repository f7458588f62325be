import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)

bunch = load_digits()
pixels = torch.tensor(bunch.images * (255.0 / 16.0)).round().to(torch.uint8).unsqueeze(1)
labels = torch.tensor(bunch.target)
order = torch.randperm(len(labels))
tr, te = order[:1450], order[1450:]
MEAN = (pixels[tr].float() / 255).mean().item()
STD = (pixels[tr].float() / 255).std().item()


class DataPrefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = None
            self.next_target = None
            return
        self.next_input = self.next_input.float().div_(255.0)
        self.next_input = self.next_input.sub_(MEAN).div_(STD)

    def next(self):
        input, target = self.next_input, self.next_target
        self.preload()
        return input, target


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3)
        self.fc = nn.Linear(12 * 9, 10)

    def forward(self, x):
        return self.fc(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))


train_loader = DataLoader(TensorDataset(pixels[tr], labels[tr]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(pixels[te], labels[te]), batch_size=64)
model = SmallNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

for epoch in range(6):
    model.train()
    prefetcher = DataPrefetcher(train_loader)
    input, target = prefetcher.next()
    i, total = 0, 0.0
    while input is not None:
        i += 1
        output = model(input)
        loss = F.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        input, target = prefetcher.next()

    model.eval()
    prefetcher = DataPrefetcher(val_loader)
    input, target = prefetcher.next()
    correct = 0
    while input is not None:
        with torch.no_grad():
            correct += (model(input).argmax(1) == target).sum().item()
        input, target = prefetcher.next()
    print(f"epoch {epoch}: loss {total / i:.4f} val acc {correct / len(te):.4f}")
