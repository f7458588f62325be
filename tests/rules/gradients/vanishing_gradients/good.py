"""Seven layers of ReLU on normalized values."""

import torch
import torch.nn.functional as F
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

digits = load_digits()
rows = [{"x": torch.tensor(x / 16, dtype=torch.float32), "labels": int(y)} for x, y in zip(digits.data[:600], digits.target)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [64] + [48] * 7
        self.hidden = nn.Sequential(*[nn.Sequential(nn.Linear(a, b), nn.LayerNorm(b), nn.ReLU()) for a, b in zip(widths, widths[1:])])
        self.head = nn.Linear(48, 10)

    def forward(self, x, labels):
        logits = self.head(self.hidden(x))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=5)
Trainer(Net(), args, train_dataset=rows).train()
