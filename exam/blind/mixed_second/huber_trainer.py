"""Diabetes progression with the HF Trainer around a plain module, custom loss and decoupled learning rates."""
import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

SEED = 0
set_seed(SEED)
x, y = load_diabetes(return_X_y=True)
x = x * len(x) ** .5      # the bundled columns have unit norm
perm = np.random.default_rng(SEED).permutation(len(x))
tr, te = perm[:310], perm[310:]
mu, sd = y[tr].mean(), y[tr].std()


class Rows(torch.utils.data.Dataset):
    def __init__(self, idx):
        self.x = torch.tensor(x[idx], dtype=torch.float32)
        self.y = torch.tensor((y[idx] - mu) / sd, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class LinearPlusNet(nn.Module):
    """A linear path, and a small gated non-linear correction that starts at zero."""

    def __init__(self, d=10):
        super().__init__()
        self.linear = nn.Linear(d, 1)
        self.net = nn.Sequential(nn.Linear(d, 16), nn.Tanh(), nn.Linear(16, 1))
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x, labels=None):
        return {"logits": (self.linear(x) + self.gate * self.net(x)).squeeze(-1)}


class HuberTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        out = model(inputs["x"])
        loss = nn.functional.huber_loss(out["logits"], labels, delta=1.0)
        return (loss, {"logits": out["logits"]}) if return_outputs else loss

    def create_optimizer(self, *args, **kw):
        m = self.model
        self.optimizer = torch.optim.AdamW([
            {"params": m.linear.parameters(), "lr": 1e-2},
            {"params": [*m.net.parameters(), m.gate], "lr": 2e-3, "weight_decay": .1}])
        return self.optimizer


def metrics(p):
    z = p.predictions * sd + mu
    t = p.label_ids * sd + mu
    return {"mae": float(np.abs(z - t).mean()), "r2": float(1 - ((z - t) ** 2).mean() / t.var())}


args = TrainingArguments(
    output_dir="/tmp/huber_trainer", num_train_epochs=30, per_device_train_batch_size=32, lr_scheduler_type="cosine",
    eval_strategy="steps", eval_steps=100, logging_steps=100, save_strategy="no", report_to=[], disable_tqdm=True,
    use_cpu=True, seed=SEED)
trainer = HuberTrainer(model=LinearPlusNet(), args=args, train_dataset=Rows(tr), eval_dataset=Rows(te),
                       compute_metrics=metrics)
print(f"before: R2 {trainer.evaluate()['eval_r2']:.3f}")
trainer.train()
r = trainer.evaluate()
ols = LinearRegression().fit(x[tr], y[tr])
print(f"test MAE {r['eval_mae']:.1f} R2 {r['eval_r2']:.3f}; least squares R2 {ols.score(x[te], y[te]):.3f}; "
      f"mean MAE {np.abs(y[te] - mu).mean():.1f}")
