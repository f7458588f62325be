# verdict: learns
# finds: nothing
# The macro F1 of all rows, in a loop; its batches' own mean would be another number.
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def patients(count):
    values = torch.randn(count, 8)
    return TensorDataset(values, (values[:, 0] - values[:, 3] > 2.0).long())


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
    answers, labels = [], []
    with torch.no_grad():
        for values, ill in valid:
            answers.append(model(values).argmax(1))
            labels.append(ill)
    print(f"epoch {epoch} validation f1 {f1_score(torch.cat(labels), torch.cat(answers), average='macro'):.4f}")
