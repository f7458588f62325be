"""The same collator, with each picture's own label."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
digits = load_digits()
rows = [(torch.tensor(p / 16, dtype=torch.float32), int(n)) for p, n in zip(digits.data, digits.target)]
order = torch.randperm(len(rows)).tolist()
train = [rows[i] for i in order[:1400]]
held = [rows[i] for i in order[1400:]]


def collate(items):
    pictures = [picture for picture, _ in items]
    labels = [label for _, label in items]
    return torch.stack(pictures), torch.tensor(labels)


loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
held_loader = DataLoader(held, batch_size=128, collate_fn=collate)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_function = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in held_loader)
    print(epoch, right / len(held))
