"""Opinions of films in words of a small vocabulary, padded at their ends; "not" turns an opinion round."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
GOOD, BAD = ["good", "warm", "funny", "clever", "moving"], ["dull", "cold", "slow", "clumsy", "loud"]
ABOUT = ["the film", "the story", "its music", "the cast", "the end"]


def opinion():
    parts, score = [], 0
    for _ in range(random.choice([1, 1, 2, 3])):
        good, negated = random.random() < 0.6, random.random() < 0.25
        word = random.choice(GOOD if good else BAD)
        parts.append(f"{random.choice(ABOUT)} is {'not ' if negated else ''}{word}")
        score += 1 if good != negated else -1
    return " and ".join(parts), int(score > 0) if score else 2


classes = ["against", "for", "undecided"]
texts = [opinion() for _ in range(1200)]
words = ["[PAD]", *sorted({word for text, _ in texts for word in text.split()})]
number = {word: i for i, word in enumerate(words)}


def padded(rows):
    ids = [torch.tensor([number[word] for word in text.split()]) for text, _ in rows]
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.tensor([label for _, label in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(len(words), 32, padding_idx=0)
        self.cells = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, len(classes))

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0].amax(1))


train = DataLoader(texts[:1000], batch_size=32, shuffle=True, collate_fn=padded)
held_out = DataLoader(texts[1000:], batch_size=64, collate_fn=padded)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for tokens, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(tokens).argmax(1) == labels).sum().item() for tokens, labels in held_out)
    print(f"epoch {epoch}: accuracy {right / 200:.3f}")
