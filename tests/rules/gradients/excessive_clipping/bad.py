"""SGD with gradients clipped to a norm of a hundred-thousandth."""

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
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        return {"loss": F.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=0.5, optim="sgd", per_device_train_batch_size=64, max_grad_norm=1e-5, num_train_epochs=9)  # expect: excessive-clipping
Trainer(Net(), args, train_dataset=rows).train()
