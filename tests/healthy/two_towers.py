"""Tabular regression with several inputs, Huber loss, standardized targets and gradient clipping off."""

import torch
from material import QUIET
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from torch import nn
from torch.utils.data import Dataset, random_split
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
x, y = load_diabetes(return_X_y=True, scaled=False)
x, y = torch.tensor(x).float(), torch.tensor(y).float()
x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


class Patients(Dataset):
    def __len__(self):
        return len(x)

    def __getitem__(self, i):
        return {"body": x[i, :4], "blood": x[i, 4:], "target": y[i]}


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.blood = nn.Linear(4, 16), nn.Linear(6, 16)
        self.norm, self.out = nn.LayerNorm(32), nn.Linear(32, 1)

    def forward(self, body, blood, target=None):
        joined = torch.cat([self.body(body), self.blood(blood)], dim=-1)
        guess = self.out(nn.functional.silu(self.norm(joined))).squeeze(-1)
        loss = None if target is None else nn.functional.huber_loss(guess, target)
        return {"loss": loss, "guess": guess}


train, test = random_split(Patients(), [0.8, 0.2])
args = TrainingArguments(
    **QUIET, learning_rate=5e-3, per_device_train_batch_size=32, num_train_epochs=20, eval_strategy="epoch",
    label_names=["target"], max_grad_norm=0.0, optim="adamw_torch", adam_beta2=0.99,
)
trainer = Trainer(
    model=Towers(), args=args, train_dataset=train, eval_dataset=test,
    compute_metrics=lambda p: {"r2": r2_score(p.label_ids, p.predictions)},
)
trainer.train()
print("RESULT", trainer.evaluate())
