"""Several labels a row: BCEWithLogitsLoss with pos_weight, F1 over batches gathered at the end."""

import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = make_multilabel_classification(1200, n_features=20, n_classes=5, n_labels=2, random_state=0)
X = (X - X.mean(0)) / X.std(0)
parts = train_test_split(torch.tensor(X).float(), torch.tensor(Y).float(), test_size=0.25, random_state=0)
x_train, x_test, y_train, y_test = parts
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=64)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
pos_weight = (y_train == 0).sum(0) / (y_train == 1).sum(0)
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
history = {"loss": [], "f1": []}

for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
    model.eval()
    predicted, true = [], []
    with torch.no_grad():
        for x, y in test_loader:
            predicted.append((torch.sigmoid(model(x)) > 0.5).int())
            true.append(y.int())
    f1 = f1_score(torch.cat(true).numpy(), torch.cat(predicted).numpy(), average="macro")
    history["f1"].append(f1)
    print(f"epoch {epoch}: loss {history['loss'][-1]:.3f} macro F1 {f1:.3f}")
