"""Message passing on random small graphs with three targets, some unobserved; Accelerate, accumulation, EMA."""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset


@dataclass
class Args:
    graphs: int = 1250
    max_nodes: int = 12
    kinds: int = 4
    dim: int = 40
    rounds: int = 3
    epochs: int = 14
    batch: int = 24
    accumulate: int = 3
    lr: float = 5e-3
    ema: float = 0.95
    missing: float = 0.3
    seed: int = 37


class GraphSet(Dataset):
    """Targets: mean same-kind-edge share, log(1 + triangles), and whether the graph is connected."""

    def __init__(self, a, n, rng):
        self.rows = [self.draw(a, rng) for _ in range(n)]

    @staticmethod
    def draw(a, rng):
        n = int(rng.integers(5, a.max_nodes + 1))
        kind = rng.integers(0, a.kinds, n)
        adj = np.triu(rng.random((n, n)) < rng.uniform(0.12, 0.5), 1)
        adj = (adj | adj.T).astype(np.float32)
        same = (kind[:, None] == kind[None, :]) * adj
        share = same.sum() / max(adj.sum(), 1)
        tri = np.trace(adj @ adj @ adj) / 6
        reach = np.linalg.matrix_power(adj + np.eye(n), n) > 0
        y = np.array([share, np.log1p(tri), float(reach.all())], dtype=np.float32)
        y[rng.random(3) < a.missing] = np.nan
        return kind, adj, y

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    size = max(len(k) for k, _, _ in rows)
    kind = torch.zeros(len(rows), size, dtype=torch.long)
    adj = torch.zeros(len(rows), size, size)
    mask = torch.zeros(len(rows), size)
    for r, (k, m, _) in enumerate(rows):
        n = len(k)
        kind[r, :n] = torch.as_tensor(k)
        adj[r, :n, :n] = torch.as_tensor(m)
        mask[r, :n] = 1
    return kind, adj, mask, torch.tensor(np.stack([y for _, _, y in rows]))


class MPNN(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = nn.Embedding(a.kinds, a.dim)
        self.message = nn.ModuleList(nn.Linear(2 * a.dim, a.dim) for _ in range(a.rounds))
        self.update = nn.GRUCell(a.dim, a.dim)
        self.read = nn.Sequential(nn.Linear(2 * a.dim + 2, a.dim), nn.SiLU())
        self.heads = nn.ModuleList(nn.Linear(a.dim, 1) for _ in range(3))
        self.log_var = nn.Parameter(torch.zeros(3))

    def forward(self, kind, adj, mask):
        h = self.embed(kind) * mask.unsqueeze(-1)
        b, n, d = h.shape
        for lin in self.message:
            pair = torch.cat([h.unsqueeze(2).expand(b, n, n, d), h.unsqueeze(1).expand(b, n, n, d)], -1)
            m = (F.relu(lin(pair)) * adj.unsqueeze(-1)).sum(2)
            h = self.update(m.reshape(-1, d), h.reshape(-1, d)).view(b, n, d) * mask.unsqueeze(-1)
        deg = adj.sum(-1).sum(-1, keepdim=True) / 20
        size = mask.sum(-1, keepdim=True) / 10
        g = self.read(torch.cat([h.sum(1) / 10, h.amax(1), deg, size], -1))
        return torch.cat([head(g) for head in self.heads], -1)

    def loss(self, pred, y):
        seen = ~torch.isnan(y)
        y = torch.nan_to_num(y)
        parts = torch.cat([F.smooth_l1_loss(pred[:, :2], y[:, :2], reduction="none", beta=0.1),
                           F.binary_cross_entropy_with_logits(pred[:, 2:], y[:, 2:], reduction="none")], 1)
        per_task = (parts * seen).sum(0) / seen.sum(0).clamp_min(1)
        return (torch.exp(-self.log_var) * per_task + 0.5 * self.log_var).sum()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    pred, y = zip(*[(model(k, m, s), y) for k, m, s, y in loader])
    pred, y = torch.cat(pred), torch.cat(y)
    seen = ~torch.isnan(y)
    r2 = [1 - (pred[s, t] - y[s, t]).pow(2).mean() / y[s, t].var() for t, s in ((0, seen[:, 0]), (1, seen[:, 1]))]
    acc = ((pred[:, 2] > 0) == (y[:, 2] > 0.5))[seen[:, 2]].float().mean()
    return [v.item() for v in (*r2, acc)]


def main():
    a = Args()
    set_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=a.accumulate)
    train = DataLoader(GraphSet(a, a.graphs, rng), batch_size=a.batch, shuffle=True, collate_fn=collate)
    test = DataLoader(GraphSet(a, 400, rng), batch_size=100, collate_fn=collate)
    model = MPNN(a)
    shadow = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(a.ema))
    groups = [{"params": [p for n, p in model.named_parameters() if n != "log_var"], "weight_decay": 1e-3},
              {"params": [model.log_var], "weight_decay": 0.0, "lr": a.lr * 2}]
    opt = torch.optim.AdamW(groups, lr=a.lr)
    updates = a.epochs * math.ceil(len(train) / a.accumulate)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=[a.lr, 2 * a.lr], total_steps=updates + 1)
    model, opt, train, test, sched = accelerator.prepare(model, opt, train, test, sched)
    accelerator.print("start r2/r2/acc", [round(v, 3) for v in evaluate(model, test)])
    for epoch in range(1, a.epochs + 1):
        model.train()
        total = 0.0
        for kind, adj, mask, y in train:
            with accelerator.accumulate(model):
                loss = accelerator.unwrap_model(model).loss(model(kind, adj, mask), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
            if accelerator.sync_gradients:
                shadow.update_parameters(accelerator.unwrap_model(model))
            total += loss.item()
        if epoch % 7 == 0:
            scores = [round(v, 3) for v in evaluate(shadow, test)]
            accelerator.print(f"epoch {epoch} loss {total / len(train):.4f} r2/r2/acc {scores}")
    final = evaluate(shadow, test)
    accelerator.print("final: share r2 {:.4f}, triangle r2 {:.4f}, connected acc {:.4f}".format(*final))


if __name__ == "__main__":
    main()
