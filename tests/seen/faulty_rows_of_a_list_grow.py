# verdict: not shown
# finds: rewritten-rows
# Each time a batch is made, its rows get a token in front: after some epochs nothing else fits.
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)


def collate(batch):
    for row in batch:
        row["ids"].insert(0, 1)  # finds: rewritten-rows
    ids = torch.tensor([(row["ids"] + [0] * 12)[:12] for row in batch])
    return ids, torch.tensor([row["label"] for row in batch])


def main():
    rows = [{"ids": [random.randint(2, 30) for _ in range(6)]} for _ in range(400)]
    for row in rows:
        row["label"] = int(row["ids"][0] > 15)
    model = nn.Sequential(nn.Embedding(40, 8), nn.Flatten(), nn.Linear(96, 2))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(6):
        for ids, labels in DataLoader(rows, 20, shuffle=True, collate_fn=collate):
            loss = nn.functional.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
