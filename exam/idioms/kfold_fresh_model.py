import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(42)
k_folds, num_epochs = 4, 12
X, y = load_wine(return_X_y=True)
X = X.astype("float32")


class SimpleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


def standardise(train_part, everything):
    mean = train_part.mean(axis=0, keepdims=True)
    std = train_part.std(axis=0, keepdims=True)
    return (everything - mean) / std


results, first_losses, last_losses = {}, [], []
kfold = StratifiedKFold(n_splits=k_folds, shuffle=True, random_state=0)
for fold, (train_ids, test_ids) in enumerate(kfold.split(X, y)):
    Xs = torch.from_numpy(standardise(X[train_ids], X))
    dataset = TensorDataset(Xs, torch.from_numpy(y))
    trainloader = DataLoader(dataset, batch_size=10, sampler=SubsetRandomSampler(train_ids))
    testloader = DataLoader(dataset, batch_size=10, sampler=SubsetRandomSampler(test_ids))

    network = SimpleNet()
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(num_epochs):
        network.train()
        current = []
        for inputs, targets in trainloader:
            optimizer.zero_grad()
            loss = loss_function(network(inputs), targets)
            loss.backward()
            optimizer.step()
            current.append(loss.item())
        if epoch == 0:
            first_losses.append(np.mean(current))
    last_losses.append(np.mean(current))

    network.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for inputs, targets in testloader:
            predicted = network(inputs).argmax(1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
    results[fold] = 100.0 * correct / total
    print(f"Fold {fold}: {results[fold]:.1f} %")

print(f"mean loss of the first epoch {np.mean(first_losses):.4f}, of the last {np.mean(last_losses):.4f}")
print(f"Average: {np.mean(list(results.values())):.1f} %")
