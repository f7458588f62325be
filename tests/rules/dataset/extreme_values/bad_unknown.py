"""A sensor that did not answer in one row of twenty is written as -9999."""

import torch
from material import QUIET
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X, y = load_wine(return_X_y=True)
features = torch.tensor(scale(X), dtype=torch.float32)
features[::20, 4] = -9999.0
order = torch.randperm(178)
rows = [{"x": features[i], "labels": int(y[i])} for i in order.tolist()]  # expect: extreme-values


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
