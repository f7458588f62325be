"""Labels as text, of which the script makes a tensor before it trains."""

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn

X, y = load_wine(return_X_y=True)
X = torch.tensor((X - X.mean(0)) / X.std(0)).float()
kinds = np.array(["Barolo", "Grignolino", "Barbera"])[y]
labels = torch.from_numpy(kinds)  # expect: string-labels
model = nn.Linear(13, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(200):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(X), labels).backward()
    optimizer.step()
