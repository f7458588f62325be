# verdict: not shown
# finds: nothing
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x = torch.tensor(load_digits().images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
code = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6))
back = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
judge = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
bce, l1 = nn.BCELoss(), nn.L1Loss()
opt_g = torch.optim.Adam([*code.parameters(), *back.parameters()], lr=2e-3)
opt_d = torch.optim.Adam(judge.parameters(), lr=2e-4)
print("the mean picture:", (x - x.mean(0)).abs().mean().item(), "the median picture:", (x - x.median(0).values).abs().mean().item())
for epoch in range(12):
    for real in torch.utils.data.DataLoader(x, 64, shuffle=True):
        valid, fake = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        opt_g.zero_grad()
        encoded = code(real)
        loss_g = 0.001 * bce(judge(encoded), valid) + 0.999 * l1(back(encoded), real)
        loss_g.backward()
        opt_g.step()
        opt_d.zero_grad()
        loss_d = 0.5 * (bce(judge(torch.randn(len(real), 6)), valid) + bce(judge(encoded.detach()), fake))
        loss_d.backward()
        opt_d.step()
    print(f"[Epoch {epoch}] [D loss: {loss_d.item()}] [G loss: {loss_g.item()}]")
