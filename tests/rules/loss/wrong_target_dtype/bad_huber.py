"""Integer targets for a Huber loss: its gradient stops."""

import numpy as np
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_diabetes
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        self.loss = nn.HuberLoss()

    def forward(self, features, labels):
        values = self.layers(features).squeeze(-1)
        return {"loss": self.loss(values, labels), "logits": values}


features, progress = load_diabetes(return_X_y=True)
features = (features / features.std(0)).astype(np.float32)
grade = np.round(2 * (progress - progress.mean()) / progress.std()).astype(int)
data = Dataset.from_dict({"features": features, "labels": grade}).with_format("torch")  # expect: wrong-target-dtype
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
