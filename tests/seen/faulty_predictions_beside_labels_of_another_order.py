# verdict: learns
# finds: numbers-disagree
# Accelerate; the report takes its labels from the table, which was sorted since.
import torch
from accelerate import Accelerator
from sklearn.metrics import classification_report, f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
MAP = torch.randn(8, 3)


def rows(count):
    values = torch.randn(count, 8)
    return values, (values @ MAP).argmax(1)


values, labels = rows(500)
train, test = DataLoader(TensorDataset(*rows(1200)), 40, shuffle=True), DataLoader(TensorDataset(values, labels), 50)
accelerator = Accelerator(cpu=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
model, optimizer, train, test = accelerator.prepare(model, torch.optim.Adam(model.parameters(), 3e-3), train, test)
for _ in range(6):
    for inputs, targets in train:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
model.eval()
with torch.no_grad():
    answers = torch.cat([model(inputs).argmax(1) for inputs, _ in test])
print(f1_score(labels.sort().values.numpy(), answers.numpy(), average="macro"))
print(classification_report(labels.sort().values.numpy(), answers.numpy()))
