import logging
import tempfile
from functools import partial
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(12)
folder = tempfile.TemporaryDirectory()
logger = logging.getLogger("survival")
logger.setLevel(logging.INFO)
file_handler = logging.FileHandler(Path(folder.name) / "run.log")
file_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
logger.addHandler(file_handler)
logger.addHandler(logging.StreamHandler())

n = 900
cov = torch.randn(n, 8)
risk = 1.2 * cov[:, 0] - 0.8 * cov[:, 1] + 0.6 * cov[:, 2] * cov[:, 3]
time = torch.distributions.Exponential(risk.exp()).sample()
censor = torch.distributions.Exponential(torch.full((n,), 0.3)).sample()
event = (time <= censor).float()
time = torch.minimum(time, censor)
tr, te = slice(0, 700), slice(700, n)


def cox_loss(score, t, e):
    order = t.argsort(descending=True)
    score, e = score[order], e[order]
    log_risk_set = score.logcumsumexp(0)
    return -((score - log_risk_set) * e).sum() / e.sum()


def concordance(score, t, e):
    earlier = (t[:, None] < t[None, :]) & (e[:, None] > 0)
    agree = (score[:, None] > score[None, :]) & earlier
    return (agree.sum() / earlier.sum()).item()


def step(model, optimizer, loss_fn, idx):
    optimizer.zero_grad()
    loss = loss_fn(model(cov[idx]).flatten(), time[idx], event[idx])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return loss.item()


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
run_step = partial(step, model, torch.optim.Adam(model.parameters(), lr=3e-3), cox_loss)
for epoch in range(20):
    values = list(map(run_step, torch.randperm(700).split(100)))
    if epoch % 4 == 3:
        with torch.no_grad():
            c = concordance(model(cov[te]).flatten(), time[te], event[te])
        logger.info("epoch %d loss %.4f c-index %.3f", epoch, sum(values) / len(values), c)
file_handler.close()
folder.cleanup()
print(f"FINAL loss {sum(values) / len(values):.4f} c-index {c:.3f}")
