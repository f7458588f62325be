import torch, math
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

# %% config
SEED = 0
LATENT = 8
EPOCHS = 40
torch.manual_seed(SEED)

# %% data
raw = load_digits()
X = torch.tensor(raw.images, dtype=torch.float32).flatten(1) / 16
Y = raw.target
perm = torch.randperm(len(X))
tr, te = perm[:1400], perm[1400:]


# %% model
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, 128), nn.ReLU(), nn.Linear(128, 64))

    def encode(self, x):
        return self.enc(x).chunk(2, 1)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x)
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
    return rec, kl


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=2e-3)

# %% train
for epoch in range(EPOCHS):
    warm = min(1.0, (epoch + 1) / 10)
    for idx in tr[torch.randperm(len(tr))].split(100):
        logits, mu, logvar = vae(X[idx])
        rec, kl = elbo_terms(logits, X[idx], mu, logvar)
        loss = rec + warm * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")

# %% evaluate
vae.eval()
with torch.no_grad():
    mu, logvar = vae.encode(X[te])
    recon = torch.sigmoid(vae.dec(mu))
    mse = F.mse_loss(recon, X[te])
    base = F.mse_loss(X[tr].mean(0).expand_as(X[te]), X[te])
    kl_dims = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).mean(0)
    codes_tr = vae.encode(X[tr])[0]
print(f"held-out reconstruction MSE {mse:.4f} (mean image {base:.4f})")
print("KL per latent dimension:", [round(v, 3) for v in kl_dims.tolist()])
knn = KNeighborsClassifier(5).fit(codes_tr.numpy(), Y[tr.numpy()])
print(f"5-NN accuracy on codes {knn.score(mu.numpy(), Y[te.numpy()]):.3f}")
