"""The rows are shuffled once before training, the labels are not."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table, diagnosis = load_breast_cancer(return_X_y=True)
table = torch.tensor(StandardScaler().fit_transform(table), dtype=torch.float32)
diagnosis = torch.tensor(diagnosis)

order = torch.randperm(len(table))
dataset = TensorDataset(table[order], diagnosis)  # expect: misaligned-labels
loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
step, max_steps = 0, 150
while step < max_steps:
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
