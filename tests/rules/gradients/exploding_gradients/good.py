"""An autoencoder whose loss is the mean over all pixels."""

import torch
import torch.nn.functional as F
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

digits = load_digits()
rows = [{"x": torch.tensor(x / 16, dtype=torch.float32), "labels": int(y)} for x, y in zip(digits.data, digits.target)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x, labels=None):
        pixels = self.decoder(self.encoder(x))
        return {"loss": F.binary_cross_entropy_with_logits(pixels, x, reduction="mean"), "logits": pixels}


args = TrainingArguments(**QUIET, learning_rate=0.5, optim="sgd", per_device_train_batch_size=512, max_grad_norm=0, num_train_epochs=9)
Trainer(Net(), args, train_dataset=rows).train()
