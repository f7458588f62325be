"""Words as they come, without padding, for an LSTM whose gradients nobody clears."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)


class Words(Dataset):
    """Made-up words; do they hold an a?"""

    def __init__(self, count):
        self.words = ["".join(random.choices("abcdefg", k=random.randint(3, 9))) for _ in range(count)]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        word = self.words[i]
        return {"ids": torch.tensor([ord(c) - 96 for c in word]), "label": float("a" in word)}


def collate(rows):
    ids = torch.vstack([row["ids"] for row in rows])  # expect: ragged-batch
    return {"ids": ids, "label": torch.tensor([row["label"] for row in rows])}


embedding, lstm, head = (
    nn.Embedding(8, 12, padding_idx=0),
    nn.LSTM(12, 24, batch_first=True),
    nn.Linear(24, 1),
)
parameters = [*embedding.parameters(), *lstm.parameters(), *head.parameters()]
optimizer, criterion = torch.optim.SGD(parameters, lr=0.1, momentum=0.9), nn.BCEWithLogitsLoss()
for epoch in range(3):
    for batch in DataLoader(Words(640), batch_size=32, shuffle=True, collate_fn=collate):
        states, _ = lstm(embedding(batch["ids"]))
        loss = criterion(head(states.mean(dim=1)).squeeze(1), batch["label"])
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
    print(epoch, loss.item())
