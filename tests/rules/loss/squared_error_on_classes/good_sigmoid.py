"""A cross-entropy of scores and classes, by the Trainer's subclass."""

from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, pixels, labels=None):
        return {"logits": self.layers(pixels)}


class SquareTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.functional.cross_entropy(outputs["logits"], labels)
        return (loss, outputs) if return_outputs else loss


pixels, digits = load_digits(return_X_y=True)
rows = [{"pixels": x, "labels": y} for x, y in zip((pixels / 16).astype("float32"), digits)]
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=32)
SquareTrainer(Net(), args, train_dataset=rows).train()
