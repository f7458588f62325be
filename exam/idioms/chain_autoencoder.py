from itertools import chain

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)

# 20 measured channels driven by 3 hidden factors, recorded at two sites
mix = torch.randn(3, 20)


def site(n, gain):
    z = torch.randn(n, 3)
    return gain * torch.tanh(z @ mix) + 0.02 * torch.randn(n, 20)


north = DataLoader(TensorDataset(site(800, 1.0)), batch_size=50, shuffle=True)
south = DataLoader(TensorDataset(site(800, 0.8)), batch_size=50, shuffle=True)
held_out = torch.cat([site(100, 1.0), site(100, 0.8)])

encoder = nn.Sequential(nn.Linear(20, 32), nn.ELU(), nn.Linear(32, 4))
decoder = nn.Sequential(nn.Linear(4, 32), nn.ELU(), nn.Linear(32, 20))

n_params = sum(p.numel() for p in chain(encoder.parameters(), decoder.parameters()))
print("parameters:", n_params)
optimizer = optim.Adam(chain(encoder.parameters(), decoder.parameters()), lr=3e-3)
criterion = nn.MSELoss()


def test():
    with torch.no_grad():
        return criterion(decoder(encoder(held_out)), held_out).item()


print(f"held-out mse at the start {test():.4f}")
for epoch in range(1, 21):
    seen, total = 0, 0.0
    for (x,) in chain(north, south):
        x_hat = decoder(encoder(x))
        loss = criterion(x_hat, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(x)
        total += loss.item() * len(x)
    if epoch in (1, 5, 10, 15, 20):
        print(f"epoch {epoch:2d} train mse {total / seen:.4f}")
print(f"held-out mse at the end {test():.4f}")
