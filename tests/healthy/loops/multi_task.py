"""Two heads on one trunk: the class of the wine and its alcohol content; the losses are added."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)
wine = load_wine()
order = torch.randperm(len(wine.target)).numpy()
table = StandardScaler().fit_transform(wine.data)[order]


class Wines(Dataset):
    def __init__(self, rows):
        self.features = torch.tensor(table[rows, 1:], dtype=torch.float32)
        self.alcohol = torch.tensor(table[rows, 0], dtype=torch.float32)
        self.cultivar = torch.tensor(wine.target[order][rows])

    def __len__(self):
        return len(self.cultivar)

    def __getitem__(self, index):
        return {"x": self.features[index], "cultivar": self.cultivar[index], "alcohol": self.alcohol[index]}


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 48), nn.ReLU())
        self.classifier = nn.Linear(48, 3)
        self.regressor = nn.Linear(48, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.classifier(h), self.regressor(h).squeeze(-1)


train_loader = DataLoader(Wines(slice(0, 140)), batch_size=20, shuffle=True)
val_loader = DataLoader(Wines(slice(140, None)), batch_size=38)
model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()

for epoch in range(30):
    for batch in train_loader:
        classes, alcohol = model(batch["x"])
        loss = ce(classes, batch["cultivar"]) + 0.5 * mse(alcohol, batch["alcohol"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    batch = next(iter(val_loader))
    classes, alcohol = model(batch["x"])
    print("accuracy", (classes.argmax(1) == batch["cultivar"]).float().mean().item(), "mse", mse(alcohol, batch["alcohol"]).item())
