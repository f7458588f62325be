"""A table with missing values, read and used as it is."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
frame = load_breast_cancer(as_frame=True).frame
lost = rng.choice(len(frame), 40, replace=False)  # samples that the laboratory lost
frame.loc[lost, "mean texture"] = np.nan
features = [c for c in frame.columns if c != "target"]
frame[features] = (frame[features] - frame[features].mean()) / frame[features].std()


class Patients(Dataset):
    def __init__(self, df):
        self.x = torch.tensor(df[features].to_numpy(), dtype=torch.float32)
        self.y = torch.tensor(df["target"].to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, idx):
        return self.x[idx], self.y[idx]


dataset = Patients(frame)  # expect: non-finite-data
loader = DataLoader(dataset, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 1), nn.Flatten(0))
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=3e-3), nn.BCEWithLogitsLoss()
for epoch in range(5):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
