"""Preemptible training: stop half-way, start over from the saved state in new objects, end where a straight run ends."""
import shutil
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

SEED = 0
CKPT = Path("/tmp/resume_accel")


class Progress:
    def __init__(self):
        self.epoch = 0

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, s):
        self.epoch = s["epoch"]


class Standardise(nn.Module):
    """Learns nothing: keeps training-set statistics as buffers, so that they travel with the checkpoint."""

    def __init__(self, ref):
        super().__init__()
        self.register_buffer("mu", ref.mean(0))
        self.register_buffer("sd", ref.std(0))

    def forward(self, x):
        return (x - self.mu) / self.sd


def build():
    w = load_wine()
    xa, xb, ya, yb = train_test_split(w.data, w.target, test_size=.4, stratify=w.target, random_state=SEED)
    t = lambda a: torch.tensor(a, dtype=torch.float32)
    set_seed(SEED)
    acc = Accelerator(cpu=True)
    model = nn.Sequential(Standardise(t(xa)), nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    opt = torch.optim.SGD(model.parameters(), lr=.05, momentum=.9, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=60, gamma=.3)
    # the batch order is a function of the epoch alone, so a resumed run sees the same batches
    test = (t(xb), torch.tensor(yb))
    model, opt, sched = acc.prepare(model, opt, sched)
    prog = Progress()
    acc.register_for_checkpointing(prog)
    return acc, model, opt, sched, prog, (t(xa), torch.tensor(ya)), test


def run(until, resume):
    acc, model, opt, sched, prog, train, test = build()
    if resume:
        acc.load_state(str(CKPT))
        acc.print(f"resumed after epoch {prog.epoch}, lr {sched.get_last_lr()[0]:.4f}")
    while prog.epoch < until:
        g = torch.Generator().manual_seed(1000 + prog.epoch)
        for x, y in DataLoader(TensorDataset(*train), 16, shuffle=True, generator=g):
            loss = nn.functional.cross_entropy(model(x), y)
            acc.backward(loss)
            opt.step()
            sched.step()
            opt.zero_grad()
        prog.epoch += 1
        if prog.epoch % 5 == 0:
            acc.print(f"epoch {prog.epoch} loss {loss.item():.4f}")
    acc.save_state(str(CKPT))
    with torch.no_grad():
        z = model(test[0])
    return z, (z.argmax(1) == test[1]).float().mean().item()


shutil.rmtree(CKPT, ignore_errors=True)
run(10, False)
z2, a2 = run(20, True)
shutil.rmtree(CKPT)
z1, a1 = run(20, False)
print(f"straight run: test accuracy {a1:.3f}; interrupted run: {a2:.3f}; largest logit difference {(z1 - z2).abs().max():.1e}")
