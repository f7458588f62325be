# verdict: not shown
# finds: nothing
# Rows are prepared when they are first read and kept; a set that draws its noise anew each epoch writes it between the readings.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.values = torch.randn(400, 6)
        self.noise = torch.zeros(400, 6)
        self.kept = [None] * 400

    def __len__(self):
        return 400

    def __getitem__(self, number):
        if self.kept[number] is None:
            self.kept[number] = (self.values[number] * 2, int(self.values[number, 0] > 0))
        row, label = self.kept[number]
        return row + self.noise[number], label


torch.manual_seed(0)
rows = Cached()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(5):
    rows.noise.normal_(0, 0.1)
    for values, labels in DataLoader(rows, 20, shuffle=True):
        loss = nn.functional.cross_entropy(model(values), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
