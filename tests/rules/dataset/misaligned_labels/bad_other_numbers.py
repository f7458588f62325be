"""Each part has its own encoder: the species of the test part are numbered by their order of appearance there."""

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
x, kind = load_wine(return_X_y=True)
names = np.array(["Barolo", "Grignolino", "Barbera"])[kind]
parts = train_test_split(scale(x), names, test_size=60, random_state=1)


def rows(values, names):
    """The columns, and the numbers of the names."""
    return Dataset.from_dict({"features": values.tolist(), "labels": pd.factorize(names)[0].tolist()})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, features, labels=None):
        scores = self.body(features)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


train, held = rows(parts[0], parts[2]), rows(parts[1], parts[3])  # expect: misaligned-labels
args = TrainingArguments(**QUIET, num_train_epochs=20, learning_rate=1e-2, eval_strategy="epoch")
trainer = Trainer(Net(), args, train_dataset=train, eval_dataset=held)
trainer.train()
