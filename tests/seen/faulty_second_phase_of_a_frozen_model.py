# verdict: learns in part
# finds: weights-stand-still
# Accelerate; the second phase is to tune the body, whose parameters are still frozen when its optimizer is built.
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
values = torch.randn(1200, 8)
rows = TensorDataset(values, (values[:, 0] + values[:, 1] ** 2 > 1).long())
train, test = torch.utils.data.random_split(rows, [900, 300])
body, head = nn.Sequential(nn.Linear(8, 64), nn.ReLU()), nn.Linear(64, 2)
body.requires_grad_(False)
model = nn.Sequential(body, head)
accelerator = Accelerator(cpu=True)


def phase(parameters, epochs):
    model_, optimizer, loader, held = accelerator.prepare(
        model, torch.optim.SGD(parameters, 0.1), DataLoader(train, 30, shuffle=True), DataLoader(test, 100)
    )
    for _ in range(epochs):
        model_.train()
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model_(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()  # finds: weights-stand-still
            optimizer.zero_grad()
        model_.eval()
        with torch.no_grad():
            right = sum((model_(inputs).argmax(1) == labels).sum().item() for inputs, labels in held)
        print("test accuracy", right / 300)


phase(head.parameters(), 6)
phase(body.parameters(), 6)
