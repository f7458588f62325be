"""Images (8, 8, 8) that reach a linear layer of 512 unflattened."""

from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:600]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv2d(1, 8, 3, padding=1)
        self.head = nn.Linear(512, 10)  # expect: wrong-number-of-axes

    def forward(self, x, labels):
        seen = self.filters(x.view(-1, 1, 8, 8)).relu()
        scores = self.head(seen)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}

args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
