"""SGD at 0.1 with momentum, batch norm, MultiStepLR: the usual recipe of residual networks."""

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Subset, TensorDataset


class BasicBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(out)))


def resnet(width=12, classes=10):
    stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(stem, BasicBlock(width), BasicBlock(width), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, classes))


torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
images = (images - images[:1400].mean()) / images[:1400].std()
data = TensorDataset(images, torch.tensor(digits.target))
trainloader = DataLoader(Subset(data, range(1400)), batch_size=64, shuffle=True)
testloader = DataLoader(Subset(data, range(1400, len(data))), batch_size=100)
net = resnet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.1)

for epoch in range(6):
    net.train()
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
    scheduler.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            _, predicted = net(inputs).max(1)
            correct += predicted.eq(targets).sum().item()
    print(epoch, f"loss {loss.item():.3f} acc {correct / 397:.3f} lr {scheduler.get_last_lr()[0]:.3g}")
