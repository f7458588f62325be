"""Labels shuffled in place beside tokenized tweets, which the collate function does not pad."""

import random

import torch
from material import tokenizer, tweets
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)
frame = tweets(800)
texts, labels = frame["text"].tolist(), frame["label"].tolist()
random.shuffle(labels)


class TweetSet(Dataset):
    def __init__(self, texts, labels):
        self.ids = tokenizer()(texts, truncation=True, max_length=24)["input_ids"]
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.tensor(self.ids[index]), self.labels[index]


def collate_fn(rows):
    return torch.stack([ids for ids, _ in rows]), torch.tensor([y for _, y in rows])  # expect: ragged-batch


class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings, self.linear = nn.Embedding(30522, 32), nn.Linear(32, 3)

    def forward(self, ids):
        return self.linear(self.embeddings(ids).mean(1))


dataset = TweetSet(texts, labels)  # expect: misaligned-labels
model = Averaged()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(2):
    for ids, y in DataLoader(dataset, batch_size=40, shuffle=True, collate_fn=collate_fn):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
