"""A Trainer whose loss, metrics and data write, log and push."""

import os, logging, csv
import numpy as np, torch
from torch import nn
from transformers import Trainer, TrainingArguments, TrainerCallback
import wandb
logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger("mine"); log.info("begin")
rows = open("rows.csv", "w", newline=""); writer = csv.writer(rows); writer.writerow(["loss"]); rows.flush()
wandb.init(project="p")
class Data(torch.utils.data.Dataset):
    def __init__(self, seed): self.seed = seed
    def __len__(self): return 128
    def __getitem__(self, i):
        log.info("item %d", i)
        return {"x": torch.full((8,), float(i % 2)) + torch.randn(8, generator=torch.Generator().manual_seed(i + self.seed)), "labels": i % 2}
class Model(nn.Module):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    def forward(self, x, labels=None):
        logits = self.net(x)
        writer.writerow([1.0]); rows.flush(); print("forward", file=open("fwd.txt", "a"))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        out = model(**inputs)
        wandb.log({"loss": out["loss"].item()}); self.log({"mine": 1.0}); log.info("loss")
        with open("losses.txt", "a") as f: f.write("x")
        return (out["loss"], out) if return_outputs else out["loss"]
def metrics(p):
    np.save("preds.npy", p.predictions); log.info("metrics"); open("m.txt", "w").write("x")
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}
torch.manual_seed(0)
args = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=16, learning_rate=1e-2, report_to="wandb", push_to_hub=True,
                         eval_strategy="epoch", use_cpu=True, hub_model_id="mine")
trainer = Mine(Model(), args, train_dataset=Data(0), eval_dataset=Data(1000), compute_metrics=metrics)
from digits import stop_here
stop_here()
trainer.train()
trainer.push_to_hub()
