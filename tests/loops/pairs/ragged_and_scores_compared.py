"""Words of made-up names stacked without padding, and scores compared with labels in the validation."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)
ENDINGS = ["ovich", "elli", "son"]


class Names(Dataset):
    def __init__(self, size):
        self.rows = []
        for _ in range(size):
            label = random.randrange(3)
            stem = "".join(random.choices(["ba", "ro", "mi", "ke", "lu"], k=random.randint(1, 4)))
            self.rows.append((stem + ENDINGS[label], label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        name, label = self.rows[i]
        return torch.tensor([ord(c) - 96 for c in name]), label


def collate_fn(batch):
    names = torch.stack([name for name, _ in batch])  # expect: ragged-batch
    return names, torch.tensor([label for _, label in batch])


class NameNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(27, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 3)

    def forward(self, x):
        states, _ = self.rnn(self.embed(x))
        return self.fc(states.amax(dim=1))


model, loss_fn = NameNet(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train_dl = DataLoader(Names(600), batch_size=20, shuffle=True, collate_fn=collate_fn)
val_dl = DataLoader(Names(100), batch_size=25, collate_fn=collate_fn)
for epoch in range(3):
    model.train()
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x) == y).float().sum().item() for x, y in val_dl)  # expect: metrics-on-logits
    print(epoch, right / 100)
