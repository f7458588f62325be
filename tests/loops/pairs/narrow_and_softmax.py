"""A CNN with nine outputs for ten digits, and a softmax over them before cross_entropy."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
targets = torch.tensor(digits.target)


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(72, 9)  # expect: label-out-of-range

    def forward(self, x):
        x = self.pool(torch.relu(self.conv(x)))
        x = self.fc(torch.flatten(x, 1))
        return torch.softmax(x, 1)  # expect: double-activation


cnn = SmallCnn()
sgd = torch.optim.SGD(cnn.parameters(), lr=0.1, momentum=0.9)
step = 0
while step < 200:
    batch = torch.randint(len(images), (32,))
    sgd.zero_grad()
    loss = F.cross_entropy(cnn(images[batch]), targets[batch])
    loss.backward()
    sgd.step()
    step += 1
print(loss.item())
