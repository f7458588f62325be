import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

SEED, N_FOLDS, EPOCHS, BS = 42, 5, 25, 16
torch.manual_seed(SEED)
X, y = load_wine(return_X_y=True)


def build_model():
    return torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 3))


skf = StratifiedKFold(n_splits=N_FOLDS, shuffle=True, random_state=SEED)
loss_fn = torch.nn.CrossEntropyLoss()
scores, oof = [], np.zeros(len(y), dtype=int)
for fold, (train_idx, val_idx) in enumerate(skf.split(X, y)):
    scaler = StandardScaler().fit(X[train_idx])
    X_tr = torch.tensor(scaler.transform(X[train_idx]), dtype=torch.float32)
    X_va = torch.tensor(scaler.transform(X[val_idx]), dtype=torch.float32)
    y_tr, y_va = torch.tensor(y[train_idx]), torch.tensor(y[val_idx])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X_tr, y_tr), batch_size=BS, shuffle=True)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = last = None
    for epoch in range(EPOCHS):
        model.train()
        running = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(xb)
        last = running / len(X_tr)
        first = last if first is None else first
    model.eval()
    with torch.no_grad():
        oof[val_idx] = model(X_va).argmax(1).numpy()
    acc = (oof[val_idx] == y[val_idx]).mean()
    scores.append(acc)
    print(f"fold {fold}: loss {first:.3f} -> {last:.3f}, val acc {acc:.3f}")
print(f"CV accuracy {np.mean(scores):.3f} +/- {np.std(scores):.3f}, out-of-fold accuracy {(oof == y).mean():.3f}")
