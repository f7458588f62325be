"""The labels are divided by ten for a plot; the model makes them integers."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
pixels, digits = load_digits(return_X_y=True)
rows = [{"x": torch.tensor(p / 16, dtype=torch.float32), "labels": float(d) / 10} for p, d in zip(pixels, digits)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        loss = torch.nn.functional.cross_entropy(logits, labels.long())  # expect: destroyed-labels
        return {"loss": loss, "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=rows).train()
