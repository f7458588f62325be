"""No optimizer at all: weights as tensors, the update written by hand, as in the first tutorials."""

import math

import torch
from sklearn.datasets import load_digits

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x_train, y_train = torch.tensor(x[:1400], dtype=torch.float) / 16, torch.tensor(y[:1400])
x_valid, y_valid = torch.tensor(x[1400:], dtype=torch.float) / 16, torch.tensor(y[1400:])

weights = torch.randn(64, 10) / math.sqrt(64)
weights.requires_grad_()
bias = torch.zeros(10, requires_grad=True)


def model(xb):
    return xb @ weights + bias


loss_func = torch.nn.functional.cross_entropy
bs, lr, epochs = 64, 0.5, 10
n = len(x_train)
for epoch in range(epochs):
    for i in range((n - 1) // bs + 1):
        xb, yb = x_train[i * bs : i * bs + bs], y_train[i * bs : i * bs + bs]
        loss = loss_func(model(xb), yb)
        loss.backward()
        with torch.no_grad():
            weights -= weights.grad * lr
            bias -= bias.grad * lr
            weights.grad.zero_()
            bias.grad.zero_()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x_valid).argmax(dim=1) == y_valid).float().mean().item())
