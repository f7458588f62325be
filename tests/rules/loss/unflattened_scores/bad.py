"""A pooling over all places whose result keeps an axis of 1 behind the classes."""

from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(8, 64, 3), nn.ReLU(), nn.Conv1d(64, 10, 3))
        self.pool = nn.AdaptiveAvgPool1d(1)

    def forward(self, images, labels):
        scores = self.pool(self.body(images))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}  # expect: unflattened-scores


pixels, digits = load_digits(return_X_y=True)
data = Dataset.from_dict({"images": (pixels / 16).reshape(-1, 8, 8).astype("float32"), "labels": digits})
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
trainer = Trainer(Net(), args, train_dataset=data)
trainer.train()
