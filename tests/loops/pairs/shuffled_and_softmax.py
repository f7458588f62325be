"""Rows sampled without their labels, and log-probabilities of probabilities."""

import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
features = pd.DataFrame(X / 16)
features = features.sample(frac=1, random_state=0)
dataset = TensorDataset(  # expect: misaligned-labels
    torch.tensor(features.to_numpy(), dtype=torch.float32), torch.tensor(y)
)
loader = DataLoader(dataset, batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
    nn.Softmax(dim=1),  # expect: double-activation
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
