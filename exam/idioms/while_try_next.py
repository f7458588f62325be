import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

X, y = load_wine(return_X_y=True)
X = X.astype(np.float32)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=1)
mean, std = X_tr.mean(0), X_tr.std(0)
X_tr, X_te = (X_tr - mean) / std, (X_te - mean) / std

dataset = TensorDataset(torch.from_numpy(X_tr), torch.from_numpy(y_tr))
dataloader = DataLoader(dataset, batch_size=16, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_fn = nn.CrossEntropyLoss()

max_iter = 200
iteration = 0
losses = []
data_iter = iter(dataloader)
while True:
    try:
        inputs, targets = next(data_iter)
    except StopIteration:
        data_iter = iter(dataloader)
        inputs, targets = next(data_iter)

    logits = model(inputs)
    loss = loss_fn(logits, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

    iteration += 1
    if iteration % 50 == 0:
        print(f"iter {iteration}: loss {np.mean(losses[-50:]):.4f}")
    if iteration >= max_iter:
        break

model.eval()
with torch.no_grad():
    acc = (model(torch.from_numpy(X_te)).argmax(1).numpy() == y_te).mean()
print(f"first {losses[0]:.4f} last {np.mean(losses[-20:]):.4f} test acc {acc:.3f}")
