"""Names of different lengths: padded by the collate function, packed for a GRU."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
ENDINGS = {0: ["ov", "sky", "enko"], 1: ["ini", "elli", "etti"], 2: ["son", "ley", "ton"]}
SYLLABLES = ["ba", "ro", "ma", "ti", "ke", "lu", "no", "pe", "sa", "vi"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make_names(count):
    rows = []
    for _ in range(count):
        label = random.randrange(3)
        name = "".join(random.choices(SYLLABLES, k=random.randint(1, 4))) + random.choice(ENDINGS[label])
        rows.append((torch.tensor([LETTERS.index(c) + 1 for c in name]), label))
    return rows


def collate(batch):
    names, labels = zip(*batch)
    lengths = torch.tensor([len(n) for n in names])
    return pad_sequence(names, batch_first=True), lengths, torch.tensor(labels)


class NameClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(27, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.gru(packed)
        return self.fc(hidden.squeeze(0))


train_loader = DataLoader(make_names(900), batch_size=30, shuffle=True, collate_fn=collate)
test_loader = DataLoader(make_names(200), batch_size=50, collate_fn=collate)
model = NameClassifier()
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=5e-3), nn.CrossEntropyLoss()
for epoch in range(5):
    model.train()
    for names, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(names, lengths), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(n, k).argmax(1) == y).sum().item() for n, k, y in test_loader)
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {hits / 200:.3f}")
