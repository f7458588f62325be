# verdict: learns
# finds: rewritten-rows
# Each reading of a row shifts the stored row itself by a place; over the epochs the shifts add up. Evaluation rows stay as they are.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
CENTRES = torch.randn(6, 20) * 1.2


class Readings(Dataset):
    def __init__(self, count, noisy):
        self.labels = torch.arange(count) % 6
        self.values = CENTRES[self.labels] + 0.6 * torch.randn(count, 20)
        self.noisy = noisy

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        row = self.values[index]
        if self.noisy:
            row[:] = torch.roll(row, int(torch.randint(-1, 2, ())))  # finds: rewritten-rows
        return row, self.labels[index]


train, held_out = DataLoader(Readings(600, True), 30, shuffle=True), DataLoader(Readings(300, False), 100)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(40):
    model.train()
    for values, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(values), labels)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    right = sum((model(values).argmax(1) == labels).sum().item() for values, labels in held_out)
print("held-out accuracy", right / 300)
