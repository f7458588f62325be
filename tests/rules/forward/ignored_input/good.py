"""Both halves of the images are used."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
halves = (images / 16).astype("float32").reshape(-1, 2, 32)[:600]
rows = [{"upper": h[0], "lower": h[1], "labels": y} for h, y in zip(halves, digits)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, upper, lower, labels):
        scores = self.body(torch.cat([upper, lower], 1))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


model = Net()
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=rows).train()
