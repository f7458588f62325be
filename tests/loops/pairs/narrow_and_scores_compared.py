"""Six topics, five outputs, and an accuracy over the scores in the training loop."""

import torch
from sklearn.datasets import make_blobs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

NUM_CLASSES = 5


class Classifier(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.norm = nn.BatchNorm1d(inputs)
        self.hidden = nn.Linear(inputs, 32)
        self.out = nn.Linear(32, classes)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(self.norm(x))))


def accuracy(scores, y):
    return (scores == y).float().mean().item()  # expect: metrics-on-logits


torch.manual_seed(0)
x, y = make_blobs(900, 6, centers=6, cluster_std=3.0, random_state=0)
points = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.long))
train_set, val_set = random_split(points, [720, 180])
model = Classifier(6, NUM_CLASSES)  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    model.train()
    for inputs, labels in DataLoader(train_set, batch_size=36, shuffle=True):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        shares = [accuracy(model(inputs), labels) for inputs, labels in DataLoader(val_set, batch_size=45)]
    print(epoch, loss.item(), sum(shares) / len(shares))
