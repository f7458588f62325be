"""Regress a price from a short list of amenity codes plus a few numeric columns (HF Trainer, own model)."""
import argparse
import datasets
import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed
from transformers.modeling_outputs import SequenceClassifierOutput

N_CODES, LIST_LEN, N_NUM = 40, 8, 4


def synth(n, rng):
    w = np.random.default_rng(7).normal(0, 1, N_CODES)
    codes = rng.integers(1, N_CODES, (n, LIST_LEN))
    num = rng.normal(size=(n, N_NUM)).astype(np.float32)
    y = .5 * w[codes].sum(1) + 1.5 * num[:, 0] - np.abs(num[:, 1]) + .8 * num[:, 2] * num[:, 3]
    return codes, num, (y + rng.normal(0, .2, n)).astype(np.float32)


class PriceModel(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(N_CODES, d)
        self.num = nn.Sequential(nn.Linear(N_NUM, 64), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(d + 64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.d = 64

    def forward(self, codes, labels=None, **features):
        h = self.emb(codes).mean(1)
        if "numeric" in features:
            n = self.num(features["numeric"])
        else:
            n = h.new_zeros(len(h), self.d)
        pred = self.head(torch.cat([h, n], 1))[:, 0]
        loss = None if labels is None else nn.functional.mse_loss(pred, labels)
        return SequenceClassifierOutput(loss=loss, logits=pred)


def metrics(p):
    err = p.predictions - p.label_ids
    return {"rmse": float(np.sqrt((err ** 2).mean())),
            "r2": float(1 - (err ** 2).mean() / p.label_ids.var())}


def collate(rows):
    return {k: torch.stack([r[k] for r in rows]) for k in rows[0]}


def run(a):
    set_seed(a.seed)
    rng = np.random.default_rng(a.seed)

    def table(n):
        c, m, y = synth(n, rng)
        return datasets.Dataset.from_dict({"codes": c, "numeric": m, "labels": y}).with_format("torch")

    train, test = table(3000), table(1000)
    args = TrainingArguments(
        output_dir="/tmp/house_mixed", num_train_epochs=a.epochs, per_device_train_batch_size=64, learning_rate=a.lr,
        per_device_eval_batch_size=500, eval_strategy="epoch", save_strategy="no", logging_strategy="epoch",
        report_to=[], disable_tqdm=True, use_cpu=True, seed=a.seed)
    tr = Trainer(model=PriceModel(), args=args, train_dataset=train, eval_dataset=test, compute_metrics=metrics,
                 data_collator=collate)
    tr.train()
    r = tr.evaluate()
    print(f"test RMSE {r['eval_rmse']:.3f} R2 {r['eval_r2']:.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=0)
    run(p.parse_args())
