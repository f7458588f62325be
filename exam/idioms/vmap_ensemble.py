import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(10)
E = 5


def f(x):
    return torch.sin(3 * x) * torch.exp(-0.2 * x**2)


x = torch.rand(600, 1) * 5 - 2.5
y = f(x) + 0.05 * torch.randn_like(x)
grid = torch.linspace(-2.5, 2.5, 200)[:, None]

members = [nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)) for _ in range(E)]
params, buffers = stack_module_state(members)
skeleton = copy.deepcopy(members[0]).to("meta")


def call_one(p, b, inp):
    return functional_call(skeleton, (p, b), (inp,))


def member_loss(p, b, inp, target):
    return nn.functional.mse_loss(call_one(p, b, inp), target)


optimizer = torch.optim.Adam(params.values(), lr=5e-3)


def bootstrap(bs):
    pick = torch.randint(0, len(x), (E, bs))
    return x[pick], y[pick]


for step in range(500):
    xb, yb = bootstrap(48)
    optimizer.zero_grad()
    losses = vmap(member_loss)(params, buffers, xb, yb)
    losses.sum().backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            preds = vmap(call_one, in_dims=(0, 0, None))(params, buffers, grid)
        mse = (preds.mean(0) - f(grid)).square().mean().item()
        spread = preds.std(0).mean().item()
        print(f"step {step + 1} members {[round(v, 4) for v in losses.tolist()]} ensemble mse {mse:.5f} spread {spread:.4f}")
print(f"FINAL ensemble mse {mse:.5f}")
