"""Gradients by torch.autograd.grad and an update by hand; the model's softmax is followed by a loss that has its own."""

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
features, labels = load_wine(return_X_y=True)
features = torch.tensor((features - features.mean(0)) / features.std(0), dtype=torch.float32)
labels = torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(13, 32), nn.Linear(32, 3)

    def forward(self, x):
        return functional.softmax(self.outer(torch.tanh(self.inner(x))), dim=-1)  # expect: double-activation


def update(parameters, gradients, rate):
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            parameter -= rate * gradient


model = Classifier()
parameters = list(model.parameters())
for epoch in range(20):
    for rows in torch.randperm(len(labels)).split(32):
        loss = functional.cross_entropy(model(features[rows]), labels[rows])
        update(parameters, torch.autograd.grad(loss, parameters), rate=0.3)
