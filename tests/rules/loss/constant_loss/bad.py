"""Cross-entropy over one output: always 0."""

import numpy as np
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_breast_cancer
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, features, labels):
        scores = self.layers(features)
        loss = self.loss(scores, labels.unsqueeze(1))  # expect: constant-loss
        return {"loss": loss, "logits": scores}


features, malignant = load_breast_cancer(return_X_y=True)
features = ((features - features.mean(0)) / features.std(0)).astype(np.float32)
data = Dataset.from_dict({"features": features, "labels": malignant.astype(np.float32)}).with_format("torch")
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
