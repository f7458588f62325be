"""A train() of its own that never reaches training mode."""

from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:600]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, 10)

    def forward(self, x, labels):
        scores = self.head(self.body(x))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}

    def train(self, mode=True):  # expect: inactive-training-mode
        return super().train(False)

args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
