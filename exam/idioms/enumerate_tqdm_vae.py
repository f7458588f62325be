# VAE on the 8x8 digits
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader
from tqdm import tqdm

torch.manual_seed(0)
data = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
data = data[torch.randperm(len(data))]
train_data, test_data = data[:1500], data[1500:]
train_loader = DataLoader(train_data, batch_size=64, shuffle=True)


class VAE(nn.Module):
    def __init__(self, dim=64, hidden=128, latent=8):
        super().__init__()
        self.enc = nn.Linear(dim, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec1 = nn.Linear(latent, hidden)
        self.dec2 = nn.Linear(hidden, dim)

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.dec2(F.relu(self.dec1(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

train_curve = []
for epoch in range(1, 16):
    model.train()
    train_loss = 0
    for batch_idx, x in enumerate(tqdm(train_loader, leave=False)):
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    train_curve.append(train_loss / len(train_data))

model.eval()
with torch.no_grad():
    recon, mu, logvar = model(test_data)
    test_bce = F.binary_cross_entropy(recon, test_data, reduction="sum").item() / len(test_data)
    test_kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()).item() / len(test_data)
print(f"====> first epoch loss: {train_curve[0]:.4f}, last epoch loss: {train_curve[-1]:.4f}")
print(f"====> test reconstruction: {test_bce:.3f}  kl: {test_kld:.3f}")
