# verdict: learns
# finds: wrong-mode
# The model is never put into evaluation mode.
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=64)


class Training:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def epoch(self):
        self.net.train()
        for inputs, labels in train:
            self.optimizer.zero_grad()
            self.loss(inputs, labels).backward()
            self.optimizer.step()

    def loss(self, inputs, labels):
        return nn.functional.cross_entropy(self.net(inputs), labels)  # finds: wrong-mode

    @torch.no_grad()
    def validate(self):
        return sum(self.loss(inputs, labels).item() for inputs, labels in valid) / len(valid)


training = Training(nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)))
for number in range(10):
    training.epoch()
    print(number, training.validate())
