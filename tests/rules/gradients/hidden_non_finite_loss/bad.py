"""The positives and the negatives each get a mean; a batch without positives has a mean of nothing."""

import torch
import torch.nn.functional as F
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

digits = load_digits()
rows = [{"x": torch.tensor(x / 16, dtype=torch.float32), "labels": int(y)} for x, y in zip(digits.data[:600], digits.target)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, labels):
        scores = self.layers(x).squeeze(-1)
        nines = labels == 9
        each = F.softplus(torch.where(nines, -scores, scores))
        loss = each[nines].mean() + each[~nines].mean()
        return {"loss": loss, "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=12, num_train_epochs=5)
trainer = Trainer(Net(), args, train_dataset=rows)  # expect: hidden-non-finite-loss
trainer.train()
