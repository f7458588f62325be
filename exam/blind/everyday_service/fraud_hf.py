"""Card fraud on tabular data with the HF Trainer around a plain nn.Module.

* categorical columns -> embeddings, amounts -> log + z-score
* weighted BCE in a Trainer subclass, optimizer and OneCycle schedule handed over ready-made
"""
import tempfile

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import train_test_split
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

CATS = {"merchant": 12, "country": 8, "channel": 3}
NUMS = ["amount", "hour_sin", "hour_cos", "n_last_day"]


def generate(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({c: rng.integers(0, k, n) for c, k in CATS.items()})
    df["amount"] = rng.lognormal(3.2, 1.0, n)
    hour = rng.integers(0, 24, n)
    df["hour_sin"], df["hour_cos"] = np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12)
    df["n_last_day"] = rng.poisson(2.0, n)
    risk = (1.6 * np.log(df.amount / 25) + 2.2 * df.merchant.isin([2, 7]) + 2.0 * (df.country == 5)
            + 1.5 * (df.channel == 2) + 1.4 * df.hour_cos + 0.8 * (df.n_last_day - 2))
    p = 1 / (1 + np.exp(-4 * (risk - 4.2)))
    df["fraud"] = (rng.random(n) < p).astype(int)
    return df


class Rows(torch.utils.data.Dataset):
    def __init__(self, df, mean, std):
        num = df[NUMS].to_numpy(dtype=np.float64, copy=True)
        num[:, 0] = np.log(num[:, 0])
        self.num = torch.tensor((num - mean) / std, dtype=torch.float32)
        self.cat = torch.tensor(df[list(CATS)].to_numpy(), dtype=torch.long)
        self.y = torch.tensor(df.fraud.to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"num": self.num[i], "cat": self.cat[i], "labels": self.y[i]}


class FraudNet(nn.Module):
    def __init__(self, dim=6, hidden=48):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(k, dim) for k in CATS.values())
        self.mlp = nn.Sequential(nn.Linear(dim * len(CATS) + len(NUMS), hidden), nn.LayerNorm(hidden), nn.ReLU(),
                                 nn.Dropout(0.25), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, num, cat, labels=None):
        parts = [table(cat[:, j]) for j, table in enumerate(self.tables)] + [num]
        return {"logits": self.mlp(torch.cat(parts, dim=-1)).squeeze(-1)}


class WeightedTrainer(Trainer):
    def __init__(self, *args, pos_weight, **kwargs):
        super().__init__(*args, **kwargs)
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(pos_weight))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.criterion(outputs["logits"], labels)
        return (loss, {"loss": loss, **outputs}) if return_outputs else loss


class Brief(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        print(f"  step {state.global_step}: PR-AUC {metrics['eval_pr_auc']:.3f} F1 {metrics['eval_f1']:.3f}")


def compute_metrics(pred):
    logits, y = pred.predictions, pred.label_ids
    p = 1 / (1 + np.exp(-logits))
    return {"pr_auc": average_precision_score(y, p), "f1": f1_score(y, p > 0.8)}


set_seed(99)
df = generate(4000, 5)
train_df, test_df = train_test_split(df, test_size=0.3, stratify=df.fraud, random_state=1)
base = train_df[NUMS].assign(amount=np.log(train_df.amount))
mean, std = base.mean().to_numpy(), base.std().to_numpy()
train, test = Rows(train_df, mean, std), Rows(test_df, mean, std)
pos_weight = float((1 - train.y).sum() / train.y.sum())
print(f"fraud share {df.fraud.mean():.3f}, pos_weight {pos_weight:.1f}")

EPOCHS, BATCH = 8, 64
model = FraudNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, epochs=EPOCHS,
                                                steps_per_epoch=-(-len(train) // BATCH))
args = TrainingArguments(output_dir=tempfile.mkdtemp(), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH,
                         per_device_eval_batch_size=400, eval_strategy="steps", eval_steps=66, save_strategy="no",
                         logging_steps=66, label_names=["labels"], remove_unused_columns=False, report_to=[],
                         disable_tqdm=True, use_cpu=True, seed=99)
trainer = WeightedTrainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                          optimizers=(optimizer, scheduler), compute_metrics=compute_metrics, callbacks=[Brief()],
                          pos_weight=pos_weight)
trainer.train()
m = trainer.evaluate()
print("PR-AUC %.4f (base rate %.3f)  F1 %.4f" % (m["eval_pr_auc"], test.y.mean(), m["eval_f1"]))
