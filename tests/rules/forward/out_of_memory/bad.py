"""Batches of 64 rows, where 20 fit."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:600]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, labels):
        if len(x) > 20:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")  # stands for a device
        scores = self.body(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=64)  # expect: out-of-memory
Trainer(Net(), args, train_dataset=rows).train()