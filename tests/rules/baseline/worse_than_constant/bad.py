"""Three epochs, in which a network does not even reach the mean of its targets."""

import numpy as np
from material import QUIET
from sklearn.datasets import load_diabetes
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, labels=None):
        predicted = self.layers(x)[:, 0]
        return {"loss": nn.functional.mse_loss(predicted, labels), "logits": predicted}


set_seed(0)
x, y = load_diabetes(return_X_y=True)
rows = [{"x": a, "labels": b} for a, b in zip((20 * x).astype(np.float32), (y / 25).astype(np.float32))]
args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,  # expect: worse-than-constant
    num_train_epochs=3,
    per_device_train_batch_size=32,
)
Trainer(Net(), args, train_dataset=rows).train()
