# VQ-VAE on digits: eight codes of a book of 64 describe an image.
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
images = torch.tensor(load_digits().data / 16, dtype=torch.float32)
train_x, test_x = images[:1400], images[1400:]
SLOTS, DIM, CODES = 8, 8, 64


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=CODES, dim=DIM, beta=0.25):
        super().__init__()
        self.embedding = nn.Embedding(n_codes, dim)
        self.embedding.weight.data.normal_(0, 0.3)
        self.beta = beta

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        idx = torch.cdist(flat, self.embedding.weight).argmin(1)
        q = self.embedding(idx).view_as(z)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return q, loss, idx


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, SLOTS * DIM))
        self.vq = VectorQuantizer()
        self.decoder = nn.Sequential(nn.Linear(SLOTS * DIM, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid())

    def forward(self, x):
        q, vq_loss, idx = self.vq(self.encoder(x).view(-1, SLOTS, DIM))
        return self.decoder(q.flatten(1)), vq_loss, idx


model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(30):
    model.train()
    for x in DataLoader(train_x, batch_size=64, shuffle=True):
        recon, vq_loss, _ = model(x)
        loss = F.mse_loss(recon, x) * 10 + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        recon, vq_loss, idx = model(test_x)
    if epoch % 5 == 0 or epoch == 29:
        print(f"epoch {epoch} loss {loss.item():.4f} test mse {F.mse_loss(recon, test_x).item():.4f} codes in use {idx.unique().numel()}")
