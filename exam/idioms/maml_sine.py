"""MAML on sine waves with torch.func.functional_call."""
import math
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
meta_opt = torch.optim.Adam(net.parameters(), lr=3e-3)
INNER_LR, INNER_STEPS, TASKS, SHOTS = 0.05, 1, 8, 10


def sample_task():
    return 0.5 + 2.0 * torch.rand(1), math.pi * torch.rand(1)


def sample_points(task, n):
    amplitude, phase = task
    x = 6 * torch.rand(n, 1) - 3
    return x, amplitude * torch.sin(x + phase)


def adapt(params, x, y, steps=INNER_STEPS, create_graph=True):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(net, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=create_graph)
        params = {k: p - INNER_LR * g for (k, p), g in zip(params.items(), grads)}
    return params


def evaluate(n=50):
    total = 0.0
    for _ in range(n):
        task = sample_task()
        fast = adapt(dict(net.named_parameters()), *sample_points(task, SHOTS), create_graph=False)
        x, y = sample_points(task, 50)
        total += nn.functional.mse_loss(functional_call(net, fast, (x,)), y).item()
    return total / n


print(f"query loss after one step, before meta-training: {evaluate():.3f}")
for it in range(500):
    meta_opt.zero_grad()
    meta_loss = 0.0
    for _ in range(TASKS):
        task = sample_task()
        fast = adapt(dict(net.named_parameters()), *sample_points(task, SHOTS))
        xq, yq = sample_points(task, 20)
        meta_loss = meta_loss + nn.functional.mse_loss(functional_call(net, fast, (xq,)), yq)
    meta_loss = meta_loss / TASKS
    meta_loss.backward()
    meta_opt.step()
    if it % 100 == 0:
        print(f"iteration {it} meta loss {meta_loss.item():.3f}")
print(f"query loss after one step, after meta-training: {evaluate():.3f}")
