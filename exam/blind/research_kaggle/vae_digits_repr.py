# Representation learning on 8x8 digits with a VAE.
# Usage: python vae_digits_repr.py --z_dim 10
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--z_dim", type=int, default=10)
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--bs", type=int, default=64)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--beta", type=float, default=1.0)
parser.add_argument("--warmup", type=int, default=10)
args = parser.parse_args()
torch.manual_seed(3)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(64, args.hidden), nn.ELU(), nn.Linear(args.hidden, args.hidden), nn.ELU())
        self.mu = nn.Linear(args.hidden, args.z_dim)
        self.logvar = nn.Linear(args.hidden, args.z_dim)

    def forward(self, x):
        h = self.body(x)
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(args.z_dim, args.hidden), nn.ELU(),
            nn.Linear(args.hidden, args.hidden), nn.ELU(),
            nn.Linear(args.hidden, 64))

    def forward(self, z):
        return self.body(z)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = Encoder(), Decoder()

    def forward(self, x):
        mu, logvar = self.enc(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def negative_elbo(logits, x, mu, logvar, beta):
    rec = F.binary_cross_entropy_with_logits(logits, x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return rec + beta * kl, rec.detach(), kl.detach()


digits = load_digits()
X = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
loader = DataLoader(TensorDataset(X_tr), batch_size=args.bs, shuffle=True, drop_last=True)

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

for epoch in range(1, args.epochs + 1):
    model.train()
    beta = args.beta * min(1.0, epoch / args.warmup)
    tot, n = 0.0, 0
    for (x,) in loader:
        logits, mu, logvar = model(x)
        loss, rec, kl = negative_elbo(logits, x, mu, logvar, beta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tot, n = tot + loss.item(), n + 1
    if epoch % 15 == 0:
        print(f"[{epoch:3d}/{args.epochs}] loss {tot / n:.4f}")

model.eval()
with torch.no_grad():
    mu_tr, _ = model.enc(X_tr)
    mu_te, _ = model.enc(X_te)
    rec_te = torch.sigmoid(model.dec(mu_te))

mse = F.mse_loss(rec_te, X_te).item()
var = X_te.var(dim=0, unbiased=False).mean().item()
probe = LogisticRegression(max_iter=500).fit(mu_tr.numpy(), y_tr.numpy())
print(f"reconstruction R2 {1 - mse / var:.3f}")
print(f"linear probe accuracy {probe.score(mu_te.numpy(), y_te.numpy()):.3f}")
