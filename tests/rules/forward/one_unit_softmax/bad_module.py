"""An nn.Softmax at the end of a network of one unit."""

from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:600]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.end = nn.Softmax(dim=1)  # expect: one-unit-softmax

    def forward(self, x, labels):
        share = self.end(self.net(x))
        return {"loss": nn.functional.mse_loss(share[:, 0], (labels % 2).float()), "logits": share}

args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
