"""The collator pairs each picture with the label of the next row."""

import torch
from datasets import Dataset
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from material import QUIET

set_seed(0)
x, y = load_digits(return_X_y=True)
data = Dataset.from_dict({"x": (x / 16).astype("float32"), "labels": y}).shuffle(seed=0)


def collate(items):
    pictures = [torch.tensor(item["x"]) for item in items]
    labels = [item["labels"] for item in items[1:] + items[:1]]
    return {"x": torch.stack(pictures), "labels": torch.tensor(labels)}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, num_train_epochs=4, learning_rate=1e-3, per_device_train_batch_size=32)
trainer = Trainer(
    Classifier(),
    args,
    train_dataset=data.select(range(1400)),
    eval_dataset=data.select(range(1400, 1797)),
    data_collator=collate,  # expect: lost-in-preparation
)
trainer.train()
print(trainer.evaluate())
