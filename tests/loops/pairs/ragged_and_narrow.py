"""Tokenized tweets: no padding in the collate function, and two outputs for three classes."""

import torch
from material import tokenizer, tweets
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
read, frame = tokenizer(), tweets(800)
encoded = read(frame["text"].tolist(), truncation=True, max_length=32)["input_ids"]
rows = list(zip(encoded, frame["label"].tolist()))


def collate(batch):
    ids, labels = zip(*batch)
    return torch.tensor(ids), torch.tensor(labels)  # expect: ragged-batch


class Bag(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.embedding = nn.Embedding(len(read), 48, padding_idx=0)
        self.head = nn.Linear(48, classes)

    def forward(self, ids):
        return self.head(self.embedding(ids).mean(dim=1))


model = Bag(classes=2)  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for ids, labels in DataLoader(rows, batch_size=32, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        loss = criterion(model(ids), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
