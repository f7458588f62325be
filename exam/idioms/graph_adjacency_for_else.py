import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
N, K = 240, 4
block = torch.arange(N) % K
prob = torch.where(block[:, None] == block[None, :], 0.12, 0.012)
upper = (torch.rand(N, N) < prob).float().triu(1)
A = upper + upper.T + torch.eye(N)
d = A.sum(1).rsqrt()
A_hat = d[:, None] * A * d[None, :]
feat = torch.randn(N, 10) + 0.5 * F.one_hot(block, 10).float()
mask_train = torch.zeros(N, dtype=torch.bool)
mask_train[torch.randperm(N)[:80]] = True
mask_val = ~mask_train


class GCN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.w1 = nn.Linear(10, hidden)
        self.w2 = nn.Linear(hidden, K)

    def forward(self, adj, h):
        h = F.relu(adj @ self.w1(h))
        h = F.dropout(h, 0.3, self.training)
        return adj @ self.w2(h)


net = GCN()
opt = torch.optim.Adam(net.parameters(), lr=2e-2, weight_decay=5e-4)
best, best_state, wait, patience = float("inf"), None, 0, 25

for epoch in range(150):
    net.train()
    opt.zero_grad()
    loss = F.cross_entropy(net(A_hat, feat)[mask_train], block[mask_train])
    loss.backward()
    opt.step()

    net.eval()
    with torch.no_grad():
        out = net(A_hat, feat)
        val = F.cross_entropy(out[mask_val], block[mask_val]).item()
    if epoch % 15 == 0:
        print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f}")
    if val < best:
        best, best_state, wait = val, copy.deepcopy(net.state_dict()), 0
    else:
        wait += 1
        if wait >= patience:
            print("patience ran out at", epoch)
            break
else:
    print("used all the epochs")

net.load_state_dict(best_state)
with torch.no_grad():
    acc = (net(A_hat, feat).argmax(1) == block)[mask_val].float().mean().item()
print(f"FINAL val {best:.4f} acc {acc:.3f}")
