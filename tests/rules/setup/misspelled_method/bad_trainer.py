"""A Trainer whose own loss is never used: compute_loss is misspelled."""

import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = np.random.default_rng(seed)
        self.x = g.normal(size=(n, 8)).astype("float32")
        self.y = (self.x[:, 0] > 0).astype("int64")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": torch.tensor(self.x[i]), "labels": int(self.y[i])}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Weighted(Trainer):
    def compute_lose(self, model, inputs, return_outputs=False, **kwargs):  # expect: misspelled-method
        out = model(**inputs)
        loss = nn.functional.cross_entropy(out["logits"], inputs["labels"], weight=torch.tensor([1.0, 9.0]))
        return (loss, out) if return_outputs else loss


torch.manual_seed(0)
args = TrainingArguments("out", num_train_epochs=5, per_device_train_batch_size=32, learning_rate=1e-2, report_to="none", eval_strategy="epoch")
Weighted(model=Net(), args=args, train_dataset=Rows(640, 0), eval_dataset=Rows(160, 1)).train()
