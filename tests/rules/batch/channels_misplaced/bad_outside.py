"""Channels last, in a call that only prints a shape."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
images = torch.rand(4, 8, 8, 3)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 10))
print(model(images).shape)  # expect: channels-misplaced
