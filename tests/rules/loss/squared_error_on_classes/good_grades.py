"""A disease's progression in five grades, whose order means something, fitted as a number."""

import numpy as np
from material import QUIET
from sklearn.datasets import load_diabetes
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, labels):
        scores = self.layers(x).squeeze(-1)
        return {"loss": nn.functional.mse_loss(scores, labels), "logits": scores}


set_seed(0)
x, y = load_diabetes(return_X_y=True)
x, y = (x / x.std(axis=0)).astype(np.float32), np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
rows = [{"x": a, "labels": b} for a, b in zip(x, y.astype(np.float32))]
args = TrainingArguments(**QUIET, learning_rate=1e-2, num_train_epochs=10, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=rows).train()
