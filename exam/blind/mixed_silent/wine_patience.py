import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=150)
parser.add_argument("--patience", type=int, default=40)
parser.add_argument("--lr", type=float, default=6e-4)
parser.add_argument("--seed", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(args.seed)

# small noisy tabular problem: easy to overfit, so early stopping matters
X, y = make_classification(n_samples=1500, n_features=30, n_informative=8, n_redundant=4,
                           n_classes=3, class_sep=1.2, flip_y=0.35, random_state=args.seed)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=300, random_state=0, stratify=y)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0, stratify=y_rest)

scaler = StandardScaler().fit(X_train)


def t(a):
    return torch.tensor(scaler.transform(a), dtype=torch.float32)


X_train, X_val, X_test = t(X_train), t(X_val), t(X_test)
y_train, y_val, y_test = (torch.tensor(a) for a in (y_train, y_val, y_test))

model = nn.Sequential(
    nn.Linear(30, 128), nn.ReLU(),
    nn.Linear(128, 128), nn.ReLU(),
    nn.Linear(128, 3),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)


def score(x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
        return criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()


best_loss = float("inf")
best_epoch = -1
best_state = None
waited = 0

for epoch in range(args.epochs):
    model.train()
    perm = torch.randperm(len(X_train))
    for idx in perm.split(32):
        optimizer.zero_grad()
        loss = criterion(model(X_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()

    val_loss, val_acc = score(X_val, y_val)
    if epoch % 5 == 0:
        tr_loss, tr_acc = score(X_train, y_train)
        print(f"[{epoch:03d}] train {tr_loss:.3f}/{tr_acc:.3f}  val {val_loss:.3f}/{val_acc:.3f}")

    if val_loss < best_loss:
        best_loss, best_epoch, waited = val_loss, epoch, 0
        best_state = model.state_dict()
    else:
        waited += 1
        if waited >= args.patience:
            print("early stop at epoch", epoch)
            break

model.load_state_dict(best_state)
torch.save(best_state, "wine_patience_best.pt")
print(f"best epoch {best_epoch} with val loss {best_loss:.4f}")
test_loss, test_acc = score(X_test, y_test)
print(f"test loss {test_loss:.4f}  test acc {test_acc:.4f}")
