"""Day-ahead household energy forecast: seq2seq GRU, log targets, masked gaps, chronological split."""
import json
import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("energy")


@dataclass
class Config:
    meters: int = 12
    days: int = 100
    history: int = 48
    horizon: int = 24
    hidden: int = 40
    epochs: int = 7
    batch_size: int = 32
    lr: float = 4e-3
    gap_rate: float = 0.06
    stride: int = 16
    seed: int = 2


def load_readings(cfg):
    rng = np.random.default_rng(cfg.seed)
    idx = pd.date_range("2024-02-01", periods=24 * cfg.days, freq="h")
    cols = {}
    for m in range(cfg.meters):
        scale, peak = rng.lognormal(0, 0.5), rng.uniform(17, 21)
        daily = 0.4 + np.exp(-0.5 * ((idx.hour - peak) / 2.5) ** 2) + 0.5 * np.exp(-0.5 * ((idx.hour - 7) / 1.5) ** 2)
        weekend = np.where(idx.dayofweek >= 5, 1.35, 1.0)
        noise = np.exp(0.12 * rng.standard_normal(len(idx)))
        kwh = pd.Series(scale * daily * weekend * noise, index=idx)
        kwh[rng.random(len(idx)) < cfg.gap_rate] = np.nan
        cols[f"m{m:02d}"] = kwh
    return pd.DataFrame(cols)


class WindowSet(Dataset):
    """History (filled, with an observed flag), calendar of the horizon, and targets with a mask."""

    def __init__(self, frame, stats, cfg):
        self.items = []
        hour = frame.index.hour.to_numpy()
        cal = np.stack([np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24),
                        (frame.index.dayofweek >= 5).astype(float)], 1)
        for col in frame.columns:
            mean, std = stats[col]
            z = (np.log1p(frame[col].to_numpy()) - mean) / std
            seen = ~np.isnan(z)
            filled = np.where(seen, z, 0.0)
            for s in range(0, len(frame) - cfg.history - cfg.horizon + 1, cfg.stride):
                m, e = s + cfg.history, s + cfg.history + cfg.horizon
                past = np.column_stack([filled[s:m], seen[s:m], cal[s:m]])
                self.items.append((past, cal[m:e], filled[m:e], seen[m:e], [mean, std]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return tuple(torch.tensor(np.asarray(v), dtype=torch.float32) for v in self.items[i])


class Seq2Seq(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.encoder = nn.GRU(5, hidden, batch_first=True)
        self.cell = nn.GRUCell(4, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, past, calendar, targets=None, mask=None, teacher=0.0):
        _, h = self.encoder(past)
        h, prev = h[0], past[:, -1, 0]
        steps = []
        for t in range(calendar.shape[1]):
            h = self.cell(torch.cat([prev[:, None], calendar[:, t]], -1), h)
            y = self.out(h).squeeze(-1)
            steps.append(y)
            prev = y
            if targets is not None:
                use = (torch.rand_like(y) < teacher) & (mask[:, t] > 0)
                prev = torch.where(use, targets[:, t], y)
        return torch.stack(steps, 1)


def masked_huber(pred, target, mask):
    loss = nn.functional.huber_loss(pred, target, reduction="none")
    return (loss * mask).sum() / mask.sum().clamp_min(1)


def evaluate(model, loader):
    model.eval()
    err, total = 0.0, 0.0
    with torch.no_grad():
        for past, cal, y, mask, st in loader:
            mean, std = st[:, :1], st[:, 1:]
            pred = torch.expm1(model(past, cal) * std + mean)
            truth = torch.expm1(y * std + mean)
            err += ((pred - truth).abs() * mask).sum().item()
            total += (truth * mask).sum().item()
    return err / total


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    data = load_readings(cfg)
    cut_a, cut_b = data.index[int(0.7 * len(data))], data.index[int(0.85 * len(data))]
    train, valid, test = data[:cut_a], data[cut_a:cut_b], data[cut_b:]
    logged = np.log1p(train)
    stats = {c: (logged[c].mean(), logged[c].std()) for c in data.columns}
    loaders = [DataLoader(WindowSet(part, stats, cfg), cfg.batch_size, shuffle=(part is train))
               for part in (train, valid, test)]
    model = Seq2Seq(cfg.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.4, patience=1)
    log.info("untrained valid wape %.4f", evaluate(model, loaders[1]))
    best = (np.inf, None)
    for epoch in range(cfg.epochs):
        model.train()
        teacher = max(0.0, 0.8 - 0.16 * epoch)
        running = 0.0
        for past, cal, y, mask, _ in loaders[0]:
            loss = masked_huber(model(past, cal, y, mask, teacher), y, mask)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            running += loss.item()
        wape = evaluate(model, loaders[1])
        sched.step(wape)
        log.info("epoch %d teacher %.2f loss %.4f valid wape %.4f", epoch, teacher, running / len(loaders[0]), wape)
        if wape < best[0]:
            best = (wape, {k: v.clone() for k, v in model.state_dict().items()})
    model.load_state_dict(best[1])
    print(json.dumps({"valid_wape": round(best[0], 4), "test_wape": round(evaluate(model, loaders[2]), 4)}))


if __name__ == "__main__":
    main()
