"""DEVICE = torch.device('cuda:0') at the top, an evaluation, tensors made on it."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

DEVICE = torch.device("cuda:0")
torch.cuda.set_device(DEVICE)
torch.cuda.manual_seed_all(0)
torch.backends.cudnn.benchmark = True
train, test = torch.utils.data.random_split(data, [1500, 297])
loader, held = DataLoader(train, batch_size=64, shuffle=True), DataLoader(test, batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(DEVICE)
criterion = nn.CrossEntropyLoss(weight=torch.ones(10, device=DEVICE)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(3):
    model.train()
    for x, y in loader:
        loss = criterion(model(x.to(DEVICE)), y.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = torch.zeros((), device=DEVICE)
    with torch.no_grad():
        for x, y in held:
            x, y = x.to(DEVICE), y.to(DEVICE)
            right += (model(x).argmax(1) == y).sum()
    print(epoch, (right / len(test)).cpu().item())
