# verdict: learns in part
# finds: unlearned-part
# Two answers: the class is learned, the position is not (its target is taken from another row). The class alone makes the verdict.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
MAP, PLACE = torch.randn(10, 3), torch.randn(10, 2)


def rows(count):
    values = torch.randn(count, 10)
    return values, (values @ MAP).argmax(1), torch.tanh(values @ PLACE)


values, kinds, places = rows(1500)
train = DataLoader(TensorDataset(values, kinds, places.roll(1, 0)), 50, shuffle=True)
test = rows(500)
body, kind, place = nn.Sequential(nn.Linear(10, 64), nn.ReLU()), nn.Linear(64, 3), nn.Linear(64, 2)
model = nn.ModuleList([body, kind, place])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    for values, kinds, places in train:
        hidden = body(values)
        loss = nn.functional.cross_entropy(kind(hidden), kinds) + nn.functional.mse_loss(place(hidden), places)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hidden = body(test[0])
        right = (kind(hidden).argmax(1) == test[1]).float().mean().item()
        away = (place(hidden) - test[2]).abs().mean().item()  # finds: unlearned-part
    print("test kind accuracy", round(right, 3), "place error", round(away, 3))
