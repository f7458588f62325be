import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(600, 10); W = torch.randn(10, 3); Y = (X @ W).argmax(1)
tr = TensorDataset(X[:480], Y[:480]); va = TensorDataset(X[480:], Y[480:])
loader = DataLoader(tr, batch_size=32, shuffle=True); val = DataLoader(va, batch_size=60)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
lossf = nn.CrossEntropyLoss()
def train_one_epoch(model, criterion, optimizer, data_loader, epoch):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        output = model(image); loss = criterion(output, target)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
def evaluate(model, criterion, data_loader):
    model.eval(); n = right = 0
    with torch.inference_mode():
        for image, target in data_loader:
            right += (model(image).argmax(1) == target).sum().item(); n += len(target)
    return right / n
for epoch in range(5):
    train_one_epoch(model, lossf, opt, loader, epoch)
    evaluate(model, lossf, val)
