"""SGD at 0.1 with momentum: right where batch normalization keeps the activations in range."""

import numpy as np
import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(0)
digits = load_digits()
rows = [{"x": image[None], "labels": int(y)} for image, y in zip((digits.images / 16).astype(np.float32), digits.target)]
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
args = TrainingArguments(**QUIET, per_device_train_batch_size=32)
Trainer(model, args, train_dataset=rows, optimizers=(optimizer, None)).train()
