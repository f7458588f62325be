import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)

digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
p = torch.randperm(len(x))
loader = DataLoader(TensorDataset(x[p[:1400]], y[p[:1400]]), batch_size=70, shuffle=True)
x_test, y_test = x[p[1400:]], y[p[1400:]]


def conv_bn(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


model = nn.Sequential(conv_bn(1, 8), nn.MaxPool2d(2), conv_bn(8, 16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
swa_model = AveragedModel(model)
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
swa_start = 4

for epoch in range(8):
    model.train()
    total = 0.0
    for input, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(input), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")

update_bn(loader, swa_model)
swa_model.eval()
with torch.no_grad():
    out = swa_model(x_test)
print(f"swa test loss {loss_fn(out, y_test).item():.4f} acc {(out.argmax(1) == y_test).float().mean().item():.4f}")
