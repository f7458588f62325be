# question: is this a good way to forecast several hours ahead with a one-step LSTM?
import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)

HOURS = 2400
LOOK_BACK = 36
HORIZON = 48


def make_series():
    t = np.arange(HOURS)
    daily = 1.0 * np.sin(2 * math.pi * t / 24) + 0.4 * np.sin(4 * math.pi * t / 24 + 0.6)
    weekly = 0.35 * np.cos(2 * math.pi * t / 168)
    return 20 + 6 * (daily + weekly) + rng.normal(0, 0.35, HOURS)


def windows(s, look_back):
    X, y = [], []
    for i in range(len(s) - look_back):
        X.append(s[i:i + look_back])
        y.append(s[i + look_back - 1])
    X = torch.tensor(np.array(X), dtype=torch.float32).unsqueeze(-1)
    y = torch.tensor(np.array(y), dtype=torch.float32).unsqueeze(-1)
    return X, y


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


series = make_series()
cut = HOURS - HORIZON
mu, sd = series[:cut - 300].mean(), series[:cut - 300].std()
z = (series - mu) / sd

train_X, train_y = windows(z[:cut - 300], LOOK_BACK)
val_X, val_y = windows(z[cut - 300 - LOOK_BACK:cut], LOOK_BACK)
print("train", tuple(train_X.shape), "val", tuple(val_X.shape))

model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=3)
loss_fn = nn.MSELoss()

epoch, bad, best, best_w = 0, 0, float("inf"), None
while epoch < 22 and bad < 8:
    model.train()
    for idx in torch.randperm(len(train_X)).split(64):
        opt.zero_grad()
        loss = loss_fn(model(train_X[idx]), train_y[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(val_X), val_y).item()
    sched.step(val)
    if val < best:
        best, bad = val, 0
        best_w = {k: v.detach().clone() for k, v in model.state_dict().items()}
    else:
        bad += 1
    if epoch % 4 == 0:
        print("epoch %d  val mse %.5f  lr %.5f" % (epoch, val, opt.param_groups[0]["lr"]))
    epoch += 1

model.load_state_dict(best_w)
model.eval()

# feed the forecasts back in, one hour at a time
history = list(z[cut - LOOK_BACK:cut])
forecast = []
with torch.no_grad():
    for _ in range(HORIZON):
        x = torch.tensor(np.array(history[-LOOK_BACK:]), dtype=torch.float32).view(1, -1, 1)
        nxt = model(x).item()
        forecast.append(nxt)
        history.append(nxt)

forecast = np.array(forecast) * sd + mu
actual = series[cut:]
seasonal_naive = series[cut - 24:cut].tolist() * 2
print("best val rmse (one step)   %.3f" % (math.sqrt(best) * sd))
print("seasonal naive MAE         %.3f" % np.abs(np.array(seasonal_naive) - actual).mean())
print("48 h forecast MAE          %.3f" % np.abs(forecast - actual).mean())
