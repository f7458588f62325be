import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)

X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=5)
scaler = StandardScaler()
X_train = torch.FloatTensor(scaler.fit_transform(X_train))
X_val = torch.FloatTensor(scaler.transform(X_val))
y_train, y_val = torch.FloatTensor(y_train), torch.FloatTensor(y_val)

train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X_val, y_val), batch_size=64)

model = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = optim.Adam(model.parameters(), lr=2e-3)

results = []
for epoch in range(10):
    model.train()
    train_iter = iter(train_loader)
    train_loss = 0.0
    for i in range(len(train_loader)):
        x, target = next(train_iter)
        optimizer.zero_grad()
        out = model(x).view(-1)
        loss = criterion(out, target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()

    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for x, target in val_loader:
            out = model(x).view(-1)
            val_loss += criterion(out, target).item() * len(x)
            correct += ((out > 0).float() == target).sum().item()
    results.append((train_loss / len(train_loader), val_loss / len(y_val), correct / len(y_val)))
    print("epoch %d  train %.4f  val %.4f  acc %.3f" % (epoch, *results[-1]))

print("first", results[0])
print("last", results[-1])
