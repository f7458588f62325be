"""Raw pixels from 0 to 255, and a model whose first layer normalizes them."""

import numpy as np
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(1), nn.Conv2d(1, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)
        )

    def forward(self, pixel_values, labels=None):
        logits = self.layers(pixel_values)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(0)
digits = load_digits()
images = np.round(digits.images[:, None] * 255 / 16).astype(np.float32)
rows = [{"pixel_values": x, "labels": int(y)} for x, y in zip(images, digits.target)]
args = TrainingArguments(**QUIET, learning_rate=5e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=rows).train()
