"""Matrix factorization with sparse gradients: SparseAdam for the embeddings, AdamW for a layer, biases that begin at zero."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
users, items = torch.randn(120, 4), torch.randn(80, 4)
pairs = torch.stack([torch.randint(0, 120, (4000,)), torch.randint(0, 80, (4000,))], dim=1)
liked = ((users[pairs[:, 0]] * items[pairs[:, 1]]).sum(1) > 0).float()
loader = DataLoader(TensorDataset(pairs[:3600], liked[:3600]), batch_size=64, shuffle=True)


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(120, 8, sparse=True)
        self.items = nn.Embedding(80, 8, sparse=True)
        self.bias = nn.Embedding(80, 1, sparse=True)
        nn.init.zeros_(self.bias.weight)
        self.tower = nn.Linear(8, 8)

    def forward(self, pair):
        user, item = pair[:, 0], pair[:, 1]
        return (self.tower(self.users(user)) * self.items(item)).sum(1) + self.bias(item).squeeze(-1)


model = Factors()
sparse = torch.optim.SparseAdam([model.users.weight, model.items.weight, model.bias.weight], lr=0.02)
dense = torch.optim.AdamW(model.tower.parameters(), lr=0.01)
for epoch in range(8):
    for pair, like in loader:
        sparse.zero_grad()
        dense.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(pair), like)
        loss.backward()
        sparse.step()
        dense.step()
with torch.no_grad():
    print(((model(pairs[3600:]) > 0) == (liked[3600:] > 0)).float().mean().item())
