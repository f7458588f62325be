# verdict: learns
# finds: numbers-disagree
# The loader shuffles: predictions come from one pass and labels from another. The pass itself says 0.9, the report 0.3.
import torch
from sklearn.metrics import accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
MAP = torch.randn(8, 4)


def rows(count):
    values = torch.randn(count, 8)
    return TensorDataset(values, (values @ MAP).argmax(1))


train, test = DataLoader(rows(1200), 40, shuffle=True), DataLoader(rows(400), 40, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for values, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(values), labels)
        loss.backward()
        optimizer.step()
    print("loss", round(loss.item(), 3))
model.eval()
with torch.no_grad():
    answers = torch.cat([model(values).argmax(1) for values, _ in test])
labels = torch.cat([labels for _, labels in test])
print("test accuracy", accuracy_score(labels.numpy(), answers.numpy()))
