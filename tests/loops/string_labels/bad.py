"""Names of classes as labels: the loader hands the loop a tuple of text."""

import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
iris = load_iris()


class Iris(Dataset):
    def __init__(self):
        self.x = torch.tensor((iris.data - iris.data.mean(0)) / iris.data.std(0), dtype=torch.float32)
        self.species = [str(iris.target_names[t]) for t in iris.target]

    def __len__(self):
        return len(self.species)

    def __getitem__(self, index):
        return self.x[index], self.species[index]


loader = DataLoader(Iris(), batch_size=15, shuffle=True)  # expect: string-labels
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    for measurements, species in loader:
        optimizer.zero_grad()
        loss = criterion(model(measurements), species)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.4f}")
