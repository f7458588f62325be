import torch
import torch.nn as nn
from sklearn.datasets import load_wine

torch.manual_seed(2)

raw = load_wine()
X = torch.tensor(raw.data, dtype=torch.float32)
y = torch.tensor(raw.target)
idx = torch.randperm(len(X))
train, test = idx[:130], idx[130:]
mean, std = X[train].mean(0), X[train].std(0)
X = (X - mean) / std

model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_function = nn.NLLLoss()
log_softmax = nn.LogSoftmax(dim=-1)
bs = 10

for epoch in range(15):
    total = 0.0
    for batch in torch.randperm(len(train)).split(bs):
        rows = train[batch]
        loss = loss_function(log_softmax(model(X[rows])), y[rows])
        loss.backward()
        optimizer.step()
        model.zero_grad()
        total += loss.item() * len(rows)
    if epoch == 0 or epoch == 14:
        print(f"epoch {epoch} loss {total / len(train):.4f}")

with torch.no_grad():
    out = model(X[test])
    print(f"test loss {loss_function(log_softmax(out), y[test]).item():.4f}"
          f" accuracy {(out.argmax(-1) == y[test]).float().mean().item():.3f}")
