"""Rows of several lengths, in a batch that is only looked at."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
rows = [(torch.tensor(row[: 40 + i % 5]), label) for i, (row, label) in enumerate(zip(x, y))]
loader = DataLoader(rows, batch_size=32)  # expect: ragged-batch
images, labels = next(iter(loader))
print(images.shape)
