# verdict: learns
# finds: numbers-disagree
# tells: own validation recall is
# A plain loop: the recall of each batch, and their mean.
import torch
from sklearn.metrics import recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def patients(count):
    values = torch.randn(count, 8)
    return TensorDataset(values, (values[:, 0] - values[:, 3] > 2.4).long())


train, valid = DataLoader(patients(1500), 50, shuffle=True), DataLoader(patients(640), 16)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for values, ill in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(values), ill).backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for values, ill in valid:
            total += recall_score(ill, model(values).argmax(1), zero_division=0)
    print(f"epoch {epoch} validation recall {total / len(valid):.4f}")
