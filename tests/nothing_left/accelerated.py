"""An epoch that reads again what it wrote: a CSV log, the best checkpoint and its epoch."""

import os, torch, json, pandas as pd
from torch import nn
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(256, 8); y = (x.sum(1) > 0).long()
acc = Accelerator(cpu=True, log_with=["wandb"], project_dir="proj")
acc.init_trackers("p", config={"lr": 1e-2})
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), 1e-2)
model, opt, loader, val = acc.prepare(model, opt, DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True), DataLoader(TensorDataset(x[:64] + 1, y[:64]), batch_size=16))
with open("log.csv", "w") as f: f.write("epoch,loss\n")
best = 1e9
from digits import stop_here
stop_here()
for epoch in range(3):
    model.train()
    for xb, yb in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        acc.backward(loss)
        opt.step()
        acc.log({"loss": loss.item()})
    model.eval(); total = 0.0
    with torch.no_grad():
        for xb, yb in val: total += nn.functional.cross_entropy(model(xb), yb).item()
    with open("log.csv", "a") as f: f.write(f"{epoch},{total}\n")
    frame = pd.read_csv("log.csv"); assert len(frame) >= 1 and frame["loss"].min() <= total + 1
    if total < best:
        best = total; os.makedirs("ckpt", exist_ok=True)
        torch.save(acc.unwrap_model(model).state_dict(), "ckpt/best.pt"); json.dump({"epoch": epoch}, open("ckpt/best.json", "w"))
    assert json.load(open("ckpt/best.json"))["epoch"] <= epoch
    acc.unwrap_model(model).load_state_dict(torch.load("ckpt/best.pt"))
    acc.save_state("ckpt/state")
