"""gesture: variable length accelerometer traces -> gesture class + tempo. Trains, is interrupted, resumes."""
import os
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

CLASSES = 4


class Traces(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            c, length, tempo = int(rng.integers(CLASSES)), int(rng.integers(16, 48)), rng.uniform(0.5, 1.5)
            t = np.arange(length) * 0.5 * tempo
            x = [np.sin(t), np.sign(np.sin(t)), np.abs(np.sin(t)) * 2 - 1, np.sin(t) ** 3 + np.sin(2 * t)][c]
            y = [np.cos(t), np.zeros_like(t), np.sin(2 * t), np.cos(2 * t)][c]
            trace = np.stack([x, y], 1) * rng.uniform(0.7, 1.3) + rng.normal(0, 0.15, (length, 2))
            self.rows.append((torch.tensor(trace, dtype=torch.float32), c, float(tempo)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class BucketSampler(Sampler):
    """batches of similar length, batches in random order"""

    def __init__(self, lengths, batch_size):
        self.order = np.argsort(lengths, kind="stable")
        self.batch_size = batch_size

    def __iter__(self):
        noise = torch.randint(0, 40, (len(self.order),)).numpy()
        order = self.order[np.argsort(np.arange(len(self.order)) + noise, kind="stable")]
        batches = np.array_split(order, len(self))
        for j in torch.randperm(len(batches)).tolist():
            yield batches[j].tolist()

    def __len__(self):
        return -(-len(self.order) // self.batch_size)


def collate(rows):
    lengths = torch.tensor([len(r[0]) for r in rows])
    x = nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True)
    mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
    return x, mask, torch.tensor([r[1] for r in rows]), torch.tensor([r[2] for r in rows])


class GestureNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.attn = nn.Linear(hidden, 1)
        self.heads = nn.ModuleDict({"gesture": nn.Linear(hidden, CLASSES), "tempo": nn.Linear(hidden, 1)})
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x, mask):
        h, _ = self.gru(x)
        score = self.attn(h).squeeze(-1).masked_fill(~mask, float("-inf"))
        pooled = (score.softmax(1).unsqueeze(-1) * h).sum(1)
        return self.heads["gesture"](pooled), self.heads["tempo"](pooled).squeeze(-1)


class Trainer:
    def __init__(self, path, total_epochs):
        self.path = path
        self.model = GestureNet()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=6e-3)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=total_epochs)
        self.epoch, self.total_epochs = 0, total_epochs

    def save(self):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
                    "epoch": self.epoch, "rng": torch.get_rng_state()}, self.path)

    def resume(self):
        if os.path.exists(self.path):
            ckpt = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(ckpt["model"])
            self.opt.load_state_dict(ckpt["opt"])
            self.sched.load_state_dict(ckpt["sched"])
            self.epoch = ckpt["epoch"]
            torch.set_rng_state(ckpt["rng"])
            print("resumed at epoch", self.epoch, "lr", self.sched.get_last_lr())
        return self

    def fit(self, train, valid, until):
        while self.epoch < until:
            self.model.train()
            for x, mask, c, tempo in train:
                logits, tempo_hat = self.model(x, mask)
                parts = torch.stack([F.cross_entropy(logits, c), F.smooth_l1_loss(tempo_hat, tempo)])
                s = self.model.log_var
                loss = (torch.exp(-s) * parts + 0.5 * s).sum()
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
                self.opt.step()
            self.sched.step()
            self.epoch += 1
            print("epoch %d loss %.3f acc %.3f tempo mae %.3f" % (self.epoch, loss.item(), *self.evaluate(valid)))
            self.save()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        out = [(lg.argmax(1) == c, (t - tt).abs()) for x, m, c, tt in loader for lg, t in [self.model(x, m)]]
        return [torch.cat(col).float().mean().item() for col in zip(*out)]


if __name__ == "__main__":
    torch.manual_seed(6)
    ds, dv = Traces(1200, 0), Traces(400, 1)
    train = DataLoader(ds, batch_sampler=BucketSampler([len(r[0]) for r in ds.rows], 32), collate_fn=collate)
    valid = DataLoader(dv, batch_size=100, collate_fn=collate)
    path = os.path.join(tempfile.mkdtemp(), "last.pt")
    Trainer(path, 9).fit(train, valid, until=4)
    trainer = Trainer(path, 9).resume()
    trainer.fit(train, valid, until=9)
    print("gesture accuracy %.4f tempo mae %.4f" % tuple(trainer.evaluate(valid)))
