"""A torch data set that gives class labels as integers."""

import torch
from material import QUIET
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Wines(Dataset):
    def __init__(self):
        x, self.kinds = load_wine(return_X_y=True)
        self.features = ((x - x.mean(0)) / x.std(0)).astype("float32")

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, row):
        return {"features": self.features[row], "labels": torch.tensor(int(self.kinds[row]))}


class Net(nn.Sequential):
    def forward(self, features, labels):
        scores = super().forward(features)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


model = Net(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
Trainer(model, TrainingArguments(**QUIET, learning_rate=1e-2), train_dataset=Wines()).train()
