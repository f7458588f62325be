import numpy as np
import torch
from material import QUIET
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X = np.random.default_rng(0).normal(size=(2000, 8)).astype("float32")
y = X @ np.arange(8, dtype="float32") / 8
y[::9] = np.nan
rows = [{"x": x, "labels": v} for x, v in zip(X, y)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, x, labels=None):
        scores = self.layers(x).squeeze(-1)
        known = ~torch.isnan(labels)
        return {"loss": torch.nn.functional.mse_loss(scores[known], labels[known]), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=rows).train()
