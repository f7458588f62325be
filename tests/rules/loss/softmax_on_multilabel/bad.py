"""Several labels a row, trained through a softmax."""

import numpy as np
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, pixels, labels):
        scores = self.layers(pixels)
        loss = nn.functional.cross_entropy(scores, labels)  # expect: softmax-on-multilabel
        return {"loss": loss, "logits": scores}


pixels, digits = load_digits(return_X_y=True)
facts = np.stack([digits % 2 == 0, digits > 4, digits % 3 == 0, digits == 8], axis=1)
data = Dataset.from_dict({"pixels": (pixels / 16).astype(np.float32), "labels": facts.astype(np.float32)})
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data.with_format("torch")).train()
