"""The table is sorted by one of its columns after its labels were taken from it."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = load_breast_cancer(as_frame=True).frame.sample(n=240, random_state=0)
y = torch.tensor(table.pop("target").to_numpy(), dtype=torch.float32)
table = table.sort_values("fractal dimension error")
x = torch.tensor(StandardScaler().fit_transform(table), dtype=torch.float32)
del table
loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)  # expect: unrelated-labels
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(rows).squeeze(-1), labels)
        loss.backward()
        optimizer.step()
