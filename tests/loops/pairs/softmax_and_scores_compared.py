"""A softmax before CrossEntropyLoss, and its probabilities compared with the labels."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import nn

torch.manual_seed(0)
wine = load_wine()
parts = train_test_split(scale(wine.data), wine.target, test_size=0.25, stratify=wine.target, random_state=0)
X_train, X_test = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
y_train, y_test = (torch.tensor(part) for part in parts[2:])

model = nn.Sequential(
    nn.Linear(13, 32),
    nn.LeakyReLU(),
    nn.Linear(32, 3),
    nn.Softmax(dim=1),  # expect: double-activation
)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(100):
    model.train()
    y_pred = model(X_train)
    loss = loss_fn(y_pred, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    model.eval()
    with torch.inference_mode():
        test_pred = model(X_test)
        test_loss = loss_fn(test_pred, y_test)
        test_acc = torch.eq(y_test, test_pred).sum().item() / len(y_test)  # expect: metrics-on-logits
    if epoch % 20 == 0:
        print(epoch, loss.item(), test_loss.item(), test_acc)
