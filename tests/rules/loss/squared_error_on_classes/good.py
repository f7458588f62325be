"""The ten digits, with a score for each and a cross-entropy."""

from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, pixels, labels):
        scores = self.layers(pixels)
        loss = nn.functional.cross_entropy(scores, labels)
        return {"loss": loss, "logits": scores}


pixels, digits = load_digits(return_X_y=True)
rows = [{"pixels": x, "labels": y} for x, y in zip((pixels / 16).astype("float32"), digits)]
args = TrainingArguments(**QUIET, learning_rate=3e-3, num_train_epochs=10, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=rows).train()
