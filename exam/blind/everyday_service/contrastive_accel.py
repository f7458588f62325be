"""SimCLR-like pre-training on digits with accelerate, then k-NN and a linear probe on the frozen encoder."""
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

cfg = SimpleNamespace(seed=77, epochs=12, batch=128, accumulate=2, lr=4e-3, tau=0.2, warmup=10, probe_epochs=30)


class TwoViews(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def view(self, img):
        dy, dx = torch.randint(-1, 2, (2,)).tolist()
        img = torch.roll(img, (dy, dx), dims=(-2, -1)) * (0.7 + 0.6 * torch.rand(1))
        img = img * (torch.rand_like(img) > 0.12)
        return img + 0.08 * torch.randn_like(img)

    def __getitem__(self, i):
        return self.view(self.images[i]), self.view(self.images[i])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU())
        self.project = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return F.normalize(self.project(self.features(x)), dim=-1)


def nt_xent(a, b, tau):
    z = torch.cat([a, b])
    sim = z @ z.t() / tau
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    return F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))


@torch.no_grad()
def embed(model, x):
    model.eval()
    return torch.cat([model.features(chunk) for chunk in x.split(256)])


def knn(train_z, train_y, test_z, k=5):
    near = F.normalize(test_z, dim=1) @ F.normalize(train_z, dim=1).t()
    return train_y[near.topk(k, dim=1).indices].mode(dim=1).values


set_seed(cfg.seed)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=cfg.accumulate)
digits = load_digits()
X = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
train_idx, test_idx = perm[:1400], perm[1400:]

model = Encoder()
loader = DataLoader(TwoViews(X[train_idx]), batch_size=cfg.batch, shuffle=True, drop_last=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
updates = cfg.epochs * -(-len(loader) // cfg.accumulate)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, milestones=[cfg.warmup], schedulers=[
    torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=cfg.warmup),
    torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates - cfg.warmup)])
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

for epoch in range(cfg.epochs):
    model.train()
    total = 0.0
    for a, b in loader:
        with accelerator.accumulate(model):
            loss = nt_xent(model(a), model(b), cfg.tau)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        total += loss.detach().item()
    if epoch % 3 == 2:
        accelerator.print(f"epoch {epoch} nt-xent {total / len(loader):.3f} lr {scheduler.get_last_lr()[0]:.5f}")

encoder = accelerator.unwrap_model(model)
encoder.requires_grad_(False)
z_train, z_test = embed(encoder, X[train_idx]), embed(encoder, X[test_idx])
accelerator.print("5-NN accuracy %.4f" % (knn(z_train, y[train_idx], z_test) == y[test_idx]).float().mean())

mu, sd = z_train.mean(0), z_train.std(0) + 1e-6
probe = nn.Linear(z_train.shape[1], 10)
opt = torch.optim.LBFGS(probe.parameters(), lr=0.5, max_iter=5)


def closure():
    opt.zero_grad()
    loss = F.cross_entropy(probe((z_train - mu) / sd), y[train_idx]) + 1e-3 * probe.weight.square().sum()
    loss.backward()
    return loss


for _ in range(cfg.probe_epochs):
    opt.step(closure)
with torch.no_grad():
    acc = (probe((z_test - mu) / sd).argmax(1) == y[test_idx]).float().mean()
print("linear probe accuracy %.4f" % acc)
