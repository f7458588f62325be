"""Digits through a narrow autoencoder: the target is the input."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
pixels = torch.tensor(load_digits().data / 16, dtype=torch.float32)
train, valid = pixels[:1500], pixels[1500:]
loader = DataLoader(train, batch_size=50, shuffle=True)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = Autoencoder()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-6)

for epoch in range(15):
    total = 0.0
    for batch in loader:
        reconstruction = model(batch)
        loss = criterion(reconstruction, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        held_out = criterion(model(valid), valid)
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f} held out {held_out:.4f} (mean image {valid.var(0).mean():.4f})")
