"""Eight micro-batches a step whose mean losses are added, not averaged."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
train_loader = DataLoader(TensorDataset(X, torch.tensor(y)), batch_size=4, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
accum_iter = 8


def train_one_epoch():
    model.train()
    hits = 0
    for batch_idx, (inputs, labels) in enumerate(train_loader):
        preds = model(inputs)
        loss = loss_fn(preds, labels)  # expect: unscaled-accumulation
        loss.backward()
        hits += (preds.argmax(1) == labels).sum().item()
        if ((batch_idx + 1) % accum_iter == 0) or (batch_idx + 1 == len(train_loader)):
            optimizer.step()
            optimizer.zero_grad()
    return hits / (4 * len(train_loader))


for epoch in range(10):
    print(f"epoch {epoch}: accuracy {train_one_epoch():.3f}")
