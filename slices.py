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
X_train, X_val = X[:480], X[480:]
Y_train, Y_val = Y[:480], Y[480:]
for epoch in range(10):
    perm = torch.randperm(480)
    for i in range(0, 480, 32):
        ix = perm[i:i + 32]
        opt.zero_grad(); loss = lossf(model(X_train[ix]), Y_train[ix]); loss.backward(); opt.step()
    with torch.no_grad():
        v = lossf(model(X_val), Y_val).item()
