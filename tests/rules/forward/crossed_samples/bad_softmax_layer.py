"""A softmax over axis 0 as last layer of a network."""

from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
            nn.LogSoftmax(dim=0),  # expect: crossed-samples
        )

    def forward(self, pixels, labels):
        scores = self.layers(pixels)
        return {"loss": nn.functional.nll_loss(scores, labels), "logits": scores}


pixels, digits = load_digits(return_X_y=True)
data = Dataset.from_dict({"pixels": (pixels / 16).astype("float32"), "labels": digits})
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
