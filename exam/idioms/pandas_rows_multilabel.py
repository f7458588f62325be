import numpy as np
import pandas as pd
import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
A, B = make_multilabel_classification(2400, 12, n_classes=5, n_labels=2, length=80, random_state=6)
df = pd.DataFrame(A, columns=[f"f{i}" for i in range(12)])
tags = [f"tag{i}" for i in range(5)]
df[tags] = B
feats = [c for c in df.columns if c.startswith("f")]
df[feats] = df[feats] * 1e4  # raw readings come in micro-units
train, valid = df.iloc[:2000].copy(), df.iloc[2000:].copy()
mu, sd = train[feats].mean(), train[feats].std()
train[feats] = (train[feats] - mu) / sd
valid[feats] = (valid[feats] - mu) / sd

def tensors(frame):
    return (
        torch.as_tensor(frame[feats].to_numpy(copy=True), dtype=torch.float32),
        torch.as_tensor(frame[tags].to_numpy(copy=True), dtype=torch.float32),
    )


def frames(frame, size):
    frame = frame.sample(frac=1.0, random_state=int(rng.integers(1 << 30)))
    for start in range(0, len(frame), size):
        yield frame.iloc[start : start + size]


net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 5))
pos = train[tags].mean()
crit = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(((1 - pos) / pos).to_numpy(), dtype=torch.float32).clamp(0.3, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
log = []
for epoch in range(8):
    for rows in frames(train, 80):
        x, t = tensors(rows)
        opt.zero_grad()
        loss = crit(net(x), t)
        loss.backward()
        opt.step()
        log.append({"epoch": epoch, "loss": loss.item()})
    xv, tv = tensors(valid)
    with torch.no_grad():
        logit = net(xv)
        vloss = crit(logit, tv).item()
    f1 = f1_score(tv.numpy(), (logit > 0).numpy(), average="macro", zero_division=0)
report = pd.DataFrame(log).groupby("epoch").loss.mean()
print(report.round(4).to_string())
print(f"FINAL val loss {vloss:.4f} f1 {f1:.3f}")
