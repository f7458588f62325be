"""The noise that is to regularize the features drowns them, in training and in evaluation."""

import torch
from datasets import Dataset
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from material import QUIET

set_seed(0)
x, y = load_digits(return_X_y=True)
data = Dataset.from_dict({"x": (x / 16).astype("float32"), "labels": y}).shuffle(seed=0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(64, 64)
        self.hidden = nn.Linear(64, 64)
        self.scores = nn.Linear(64, 10)

    def forward(self, x, labels=None):
        features = torch.relu(self.features(x))
        features = features + 50 * torch.randn_like(features)  # expect: lost-in-forward
        scores = self.scores(torch.relu(self.hidden(features)))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, num_train_epochs=4, learning_rate=1e-3, per_device_train_batch_size=32)
trainer = Trainer(Classifier(), args, train_dataset=data.select(range(1400)))
trainer.train()
