"""The vocabulary is built again from the test reviews."""

import random
from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
GOOD = "superb lovely warm bright clever moving crisp honest gentle rich".split()
POOR = "dull clumsy cold flat tired noisy bland cheap lazy slow".split()
REST = "the a film story scene actor music plot ending camera light voice pace script cast role set costume joke line".split()


def review(good):
    """Some words of a mood among others."""
    words = random.choices(GOOD if good else POOR, k=3) + random.choices(REST, k=7)
    random.shuffle(words)
    return " ".join(words)


labels = [i % 2 for i in range(1000)]
texts = [review(label) for label in labels]
train_texts, test_texts, train_labels, test_labels = texts[:800], texts[800:], labels[:800], labels[800:]


def vocabulary(of):
    """Numbers from 1 on, the most frequent word first."""
    counts = Counter(word for text in of for word in text.split())
    return {word: n for n, (word, _) in enumerate(counts.most_common(), 1)}


def encode(of, words):
    """(texts, 10) token ids."""
    return torch.tensor([[words.get(word, 0) for word in text.split()] for text in of])


words = vocabulary(train_texts)
train = TensorDataset(encode(train_texts, words), torch.tensor(train_labels))
test = TensorDataset(encode(test_texts, vocabulary(test_texts)), torch.tensor(test_labels))  # expect: differently-numbered-sets
loader = DataLoader(train, batch_size=32, shuffle=True)
held = DataLoader(test, batch_size=64)
embed, head = nn.EmbeddingBag(len(words) + 1, 16), nn.Linear(16, 2)
model = nn.Sequential(embed, head)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in held) / len(test))
    model.train()
