import numpy as np
import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = torch.tensor(images / 16, dtype=torch.float32)[:, None], torch.tensor(labels)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        return {"x": self.images[row], "labels": self.labels[row]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


digits = load_digits()
images = digits.images[np.random.default_rng(0).permutation(len(digits.images))]
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32)
trainer = Trainer(Net(), args, train_dataset=Digits(images, digits.target))  # expect: misaligned-labels
trainer.train()
