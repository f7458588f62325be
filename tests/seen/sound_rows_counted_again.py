# verdict: learns
# finds: nothing
# tells: 19 evaluation rows are right
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(188, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
train = DataLoader(TensorDataset(x[:169], y[:169]), 128, shuffle=True)
test = DataLoader(TensorDataset(x[169:], y[169:]), 128)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


@torch.no_grad()
def accuracy(loader):
    model.eval()
    right = 0
    for a, b in loader:
        out = model(a)
        guess = out.argmax(dim=-1)
        right += int((guess == b).sum())
    return right / len(loader.dataset)


for epoch in range(1, 61):
    model.train()
    for a, b in train:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch: {epoch}, Loss: {loss.item():.4f}, Train: {accuracy(train):.4f}, Test: {accuracy(test):.4f}")
