import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
X = np.random.default_rng(0).normal(size=(4000, 8)).astype("float32")
y = X[:, :3].argmax(1)
X[3210, 5] = np.log(np.float32(0))
data = Dataset.from_dict({"x": X, "labels": y})  # expect: non-finite-data


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
