# verdict: not shown
# finds: nothing
# tells: evaluated 100 times, after updates 1 to 100
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(700, 16)
y = x[:, :4].argmax(1)
train, test = torch.zeros(700, dtype=torch.bool), torch.zeros(700, dtype=torch.bool)
train[:140], test[300:] = True, True
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


@torch.no_grad()
def accuracies():
    model.eval()
    guess = model(x).argmax(dim=-1)
    return [int((guess[m] == y[m]).sum()) / int(m.sum()) for m in (train, test)]


for epoch in range(1, 101):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x)[train], y[train])
    loss.backward()
    optimizer.step()
    a, b = accuracies()
    print(f"Epoch: {epoch:03d}, Loss: {loss.item():.4f}, Train: {a:.4f}, Test: {b:.4f}")
