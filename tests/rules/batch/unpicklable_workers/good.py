"""The workers are spawned, and the batches are formed by a function of the module."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

def main():
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))

    loader = DataLoader(data, 64, shuffle=True, num_workers=2, multiprocessing_context="spawn", collate_fn=default_collate)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()

if __name__ == "__main__":
    main()
