"""Rare positives, class weights in the loss, balanced accuracy in the evaluation."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_class_weight
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = make_classification(2000, 12, n_informative=8, weights=[0.88], class_sep=1.5, flip_y=0.01, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X.astype(np.float32), y, stratify=y, random_state=0)
weights = compute_class_weight("balanced", classes=np.unique(y_train), y=y_train)
train_loader = DataLoader(TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train)), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    epoch_loss = 0.0
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    model.eval()
    with torch.no_grad():
        predictions = model(torch.from_numpy(X_test)).argmax(dim=1).numpy()
    score = balanced_accuracy_score(y_test, predictions)
    print(f"Epoch {epoch + 1}: loss {epoch_loss / len(train_loader):.4f}, balanced accuracy {score:.3f}")
