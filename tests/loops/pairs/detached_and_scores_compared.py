"""An embedding detached before the classifier, and logits compared with the labels of a validation set."""

import torch
from material import tweets
from sklearn.feature_extraction.text import CountVectorizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BagOfWords(nn.Module):
    def __init__(self, vocabulary, classes):
        super().__init__()
        self.project = nn.Linear(vocabulary, 32, bias=False)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes))

    def forward(self, bags):
        hidden = self.project(bags)
        return self.mlp(hidden.detach())  # expect: severed-graph


def evaluate(model, loader):
    model.eval()
    correct = 0
    for bags, labels in loader:
        with torch.no_grad():
            logits = model(bags)
        correct += int((logits == labels[:, None]).sum())  # expect: metrics-on-logits
    return correct / len(loader.dataset)


torch.manual_seed(0)
frame = tweets(1000)
counts = CountVectorizer(max_features=400, binary=True).fit_transform(frame["text"]).toarray()
data = TensorDataset(torch.tensor(counts, dtype=torch.float32), torch.tensor(frame["label"]))
train, val = torch.utils.data.random_split(data, [0.8, 0.2])
model = BagOfWords(400, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    model.train()
    for bags, labels in DataLoader(train, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(bags), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), evaluate(model, DataLoader(val, batch_size=50)))
