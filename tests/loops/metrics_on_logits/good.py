"""The validation compares the best scoring class with the label."""

import torch
from material import tweets
from sklearn.feature_extraction.text import CountVectorizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
frame = tweets(1500)
words = CountVectorizer(max_features=600, binary=True).fit(frame["text"][:1200])
bags = torch.tensor(words.transform(frame["text"]).toarray(), dtype=torch.float32)
labels = torch.tensor(frame["label"].tolist())
train_dl = DataLoader(TensorDataset(bags[:1200], labels[:1200]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(bags[1200:], labels[1200:]), batch_size=64)

model = nn.Sequential(nn.Dropout(0.2), nn.Linear(600, 32), nn.ReLU(), nn.Linear(32, 3))
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)


def validate():
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for x, y in valid_dl:
            outputs = model(x)
            correct += (outputs.argmax(dim=1) == y).sum().item()
            total += y.size(0)
    return correct / total


for epoch in range(4):
    model.train()
    for x, y in train_dl:
        loss = loss_fn(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {validate():.3f}")
