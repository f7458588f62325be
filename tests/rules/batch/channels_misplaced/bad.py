"""Painted digits with the colors last, for a convolution that wants them first."""

import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments

digits, draw = load_digits(), np.random.default_rng(0)
painted = np.kron(digits.images[:400, :, :, None], np.ones((1, 2, 2, 1))) / 16 * draw.uniform(0.2, 1, (400, 1, 1, 3))
pixels = painted.astype(np.float32)
data = Dataset.from_dict({"pixels": pixels, "labels": digits.target[:400]}).with_format("torch")  # expect: channels-misplaced


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.head = torch.nn.Conv2d(3, 16, 3), torch.nn.Linear(16 * 196, 10)

    def forward(self, pixels, labels=None):
        logits = self.head(self.look(pixels).relu().flatten(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


trainer = Trainer(Net(), TrainingArguments(**QUIET, learning_rate=1e-2), train_dataset=data)
trainer.train()
