# verdict: learns
# finds: differently-scaled-sets
# Pictures are divided by their greatest value in training only.
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pictures, digits = (torch.tensor(one) for one in load_digits(return_X_y=True))
pictures = pictures.float()
train = DataLoader(TensorDataset(pictures[:1400] / 16, digits[:1400]), 32, shuffle=True)
test = DataLoader(TensorDataset(pictures[1400:], digits[1400:]), 64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(8):
    for picture, digit in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(picture), digit).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((model(picture).argmax(1) == digit).sum()) for picture, digit in test)
    print(f"epoch {epoch} test accuracy {right / 397:.3f}")
