"""Five folds with one model: from the second fold on it is evaluated on rows that it was trained on in an earlier one."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
rows, labels = load_breast_cancer(return_X_y=True)
x = torch.tensor(StandardScaler().fit_transform(rows), dtype=torch.float32)
y = torch.tensor(labels)
data = TensorDataset(x, y)
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))

scores = []
for fold, (inside, outside) in enumerate(KFold(5, shuffle=True, random_state=0).split(rows)):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(6):
        model.train()
        for features, targets in DataLoader(Subset(data, inside.tolist()), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), targets).backward()
            optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for features, targets in DataLoader(Subset(data, outside.tolist()), batch_size=64):
            right += (model(features).argmax(1) == targets).sum().item()
    scores.append(right / len(outside))
    print(f"fold {fold}: accuracy {scores[-1]:.3f}")
print(f"mean accuracy {sum(scores) / len(scores):.3f}")
