"""SIGN-style node classification: pre-propagated hop features + a gated MLP, trained with Accelerate."""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup


@dataclass
class Args:
    nodes: int = 2400
    blocks: int = 6
    hops: int = 3
    feat: int = 32
    hidden: int = 64
    epochs: int = 20
    batch: int = 64
    lr: float = 3e-3
    warmup: float = 0.1
    entropy_weight: float = 0.01
    train_share: float = 0.4
    seed: int = 23


def stochastic_block_graph(a):
    rng = np.random.default_rng(a.seed)
    y = rng.integers(0, a.blocks, a.nodes)
    centre = rng.normal(size=(a.blocks, a.feat))
    x = 0.35 * centre[y] + rng.normal(size=(a.nodes, a.feat))
    same = y[:, None] == y[None, :]
    p = np.where(same, 9.0, 1.1) / a.nodes
    adj = np.triu(rng.random((a.nodes, a.nodes)) < p, 1)
    adj = (adj | adj.T).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(adj), torch.tensor(y)


def propagate(x, adj, hops):
    """[x, Ax, A^2x, ...] with symmetric normalisation and self-loops."""
    adj = adj + torch.eye(adj.shape[0])
    d = adj.sum(1).rsqrt()
    adj = d[:, None] * adj * d[None, :]
    out = [x]
    for _ in range(hops):
        out.append(adj @ out[-1])
    return torch.stack(out, dim=1)


class HopNet(nn.Module):
    def __init__(self, feat, hidden, hops, classes):
        super().__init__()
        self.proj = nn.ModuleList(nn.Linear(feat, hidden) for _ in range(hops + 1))
        self.gate = nn.Linear(hidden, 1)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, hops):
        h = torch.stack([F.relu(p(hops[:, k])) for k, p in enumerate(self.proj)], dim=1)
        w = torch.softmax(self.gate(torch.tanh(h)).squeeze(-1), dim=1)
        z = self.norm((w.unsqueeze(-1) * h).sum(1))
        return self.head(z), w


def loaders(a):
    x, adj, y = stochastic_block_graph(a)
    feats = propagate(x, adj, a.hops)
    perm = torch.randperm(a.nodes)
    n = int(a.train_share * a.nodes)
    tr, te = perm[:n], perm[n:]
    mu, sd = feats[tr].mean(0), feats[tr].std(0)
    feats = (feats - mu) / sd
    return (DataLoader(TensorDataset(feats[tr], y[tr]), batch_size=a.batch, shuffle=True),
            DataLoader(TensorDataset(feats[te], y[te]), batch_size=256))


def test_accuracy(model, loader, accelerator):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for feats, y in loader:
            logits, _ = model(feats)
            pred, y = accelerator.gather_for_metrics((logits.argmax(-1), y))
            hits += (pred == y).sum().item()
            total += len(y)
    return hits / total


def main():
    a = Args()
    set_seed(a.seed)
    accelerator = Accelerator(cpu=True)
    train_loader, test_loader = loaders(a)
    model = HopNet(a.feat, a.hidden, a.hops, a.blocks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=5e-3)
    total_steps = math.ceil(len(train_loader) / accelerator.num_processes)
    scheduler = get_linear_schedule_with_warmup(optimizer, int(a.warmup * total_steps), total_steps)
    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler)

    for epoch in range(1, a.epochs + 1):
        model.train()
        ce_sum = ent_sum = 0.0
        for feats, y in train_loader:
            logits, w = model(feats)
            ce = F.cross_entropy(logits, y)
            entropy = -(w * w.clamp_min(1e-8).log()).sum(-1).mean()
            loss = ce + a.entropy_weight * entropy
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            ce_sum += ce.item()
            ent_sum += entropy.item()
        if epoch % 5 == 0 or epoch == 1:
            acc = test_accuracy(model, test_loader, accelerator)
            accelerator.print(f"epoch {epoch:2d} ce {ce_sum / len(train_loader):.4f} "
                              f"gate entropy {ent_sum / len(train_loader):.3f} test acc {acc:.4f}")
    accelerator.print(f"final test accuracy {test_accuracy(model, test_loader, accelerator):.4f}")


if __name__ == "__main__":
    main()
