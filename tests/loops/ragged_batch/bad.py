"""Tweets as lists of characters for a GRU; the collate function stacks rows of different lengths."""

import torch
from material import tweets
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Tweets(Dataset):
    def __init__(self, frame):
        self.texts, self.labels = frame["text"].tolist(), frame["label"].tolist()

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, idx):
        return [min(ord(c), 127) for c in self.texts[idx][:80]], self.labels[idx]


def collate_fn(batch):
    ids = torch.tensor([row for row, _ in batch])  # expect: ragged-batch
    labels = torch.tensor([label for _, label in batch])
    return ids, labels


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 24)
        self.conv = nn.Conv1d(24, 64, 5, padding=2)
        self.fc = nn.Linear(64, 3)

    def forward(self, ids):
        features = torch.relu(self.conv(self.embedding(ids).transpose(1, 2)))
        return self.fc(features.amax(dim=2))


train_loader = DataLoader(Tweets(tweets(1200)), batch_size=32, shuffle=True, collate_fn=collate_fn)
model, criterion = CharModel(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    hits = 0
    for ids, labels in train_loader:
        optimizer.zero_grad()
        scores = model(ids)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        hits += (scores.argmax(1) == labels).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {hits / 1200:.3f}")
