"""zero_grad is missing, and the accuracy compares scores with labels."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
train_ds = TensorDataset(torch.tensor(scaler.transform(X_train)).float(), torch.tensor(y_train))
test_ds = TensorDataset(torch.tensor(scaler.transform(X_test)).float(), torch.tensor(y_test))


def train(model, loader, criterion, optimizer):
    model.train()
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
    return loss.item()


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in loader:
            scores = model(inputs)
            correct += scores.eq(targets).sum().item()  # expect: metrics-on-logits
    return correct / len(loader.dataset)


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train_loader, test_loader = (
        DataLoader(train_ds, batch_size=16, shuffle=True),
        DataLoader(test_ds, batch_size=45),
    )
    for epoch in range(10):
        loss = train(model, train_loader, nn.CrossEntropyLoss(), optimizer)
        print(epoch, loss, test(model, test_loader))
