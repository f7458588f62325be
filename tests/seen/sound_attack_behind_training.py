# verdict: learns
# finds: nothing
# tells: 180 updates
# Behind the training, inputs are changed along their gradient; nothing is trained there.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres, kinds = torch.randn(4, 16) * 1.2, torch.randint(4, (1100,))
rows = centres[kinds] + torch.randn(1100, 16)
train = DataLoader(TensorDataset(rows[:600], kinds[:600]), 20, shuffle=True)
test = DataLoader(TensorDataset(rows[600:900], kinds[600:900]), 20)
attacked = DataLoader(TensorDataset(rows[900:], kinds[900:]), 20)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for epoch in range(6):
    for values, kind in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(values), kind).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((model(values).argmax(1) == kind).sum()) for values, kind in test)
    print(f"epoch {epoch} test accuracy {right / 300:.3f}")
for step in (0.0, 0.1, 0.2):
    right = 0
    for values, kind in attacked:
        values.requires_grad = True
        loss = nn.functional.cross_entropy(model(values), kind)
        model.zero_grad()
        loss.backward()
        right += int((model(values + step * values.grad.sign()).argmax(1) == kind).sum())
    print(f"step {step} accuracy {right / 200:.3f}")
