"""Waves through a GRU whose last state is made a new tensor, and no zero_grad."""

import math

import torch
from torch import nn

torch.manual_seed(0)
starts = 2 * math.pi * torch.rand(480, 1)
waves = torch.sin(starts + 0.4 * torch.arange(16))
inputs, targets = waves[:, :-1, None], waves[:, -1:]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        _, state = self.gru(x)
        state = torch.tensor(state[-1].tolist())  # expect: severed-graph
        return self.fc(state)


def train(model, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for x, y in zip(inputs.split(40), targets.split(40)):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()  # expect: uncleared-gradients
            optimizer.step()
        print(epoch, loss.item())


train(Forecaster(hidden=20), epochs=5, lr=0.02)
