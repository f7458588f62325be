"""Each row has a copy of the buffer."""

import numpy as np
from material import QUIET
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(0)
wine = load_wine()
row = np.empty(13, dtype=np.float32)
rows = []
for x, y in zip(scale(wine.data), wine.target):
    row[:] = x
    rows.append({"x": row.copy(), "labels": int(y)})
trainer = Trainer(
    Net(),
    TrainingArguments(**QUIET, learning_rate=5e-3, num_train_epochs=20, per_device_train_batch_size=16),
    train_dataset=rows,
)
trainer.train()
