"""The gradient of each row, clipped and averaged by hand: torch.func makes them, and no backward pass is called."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x, y = torch.tensor(scale(x), dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


def loss_of_one(parameters, row, label):
    return nn.functional.cross_entropy(functional_call(model, parameters, (row[None],)), label[None])


for epoch in range(6):
    for rows in torch.randperm(len(x)).split(64):
        parameters = dict(model.named_parameters())
        gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(parameters, x[rows], y[rows])
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].clamp(-1, 1).mean(0)
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        print(epoch, (model(x).argmax(1) == y).float().mean().item())
