"""Predict diabetes progression with a small MLP."""
import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

torch.manual_seed(1)
np.random.seed(1)


class DiabetesDataset(Dataset):
    def __init__(self, features, targets):
        self.features = torch.as_tensor(features, dtype=torch.float32)
        self.targets = torch.as_tensor(targets, dtype=torch.float32)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        return self.features[idx], self.targets[idx]


X, y = load_diabetes(return_X_y=True)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, random_state=42)
xs = StandardScaler().fit(X_tr)
mu, sd = y_tr.mean(), y_tr.std()
train_set = DiabetesDataset(xs.transform(X_tr), (y_tr - mu) / sd)
test_set = DiabetesDataset(xs.transform(X_te), (y_te - mu) / sd)
loader = DataLoader(train_set, batch_size=32, shuffle=True)

net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
mse = nn.MSELoss()


def r2():
    net.eval()
    with torch.no_grad():
        pred = net(test_set.features).squeeze(1)
    t = test_set.targets
    return 1 - ((pred - t) ** 2).sum().item() / ((t - t.mean()) ** 2).sum().item()


losses = []
r2_before = r2()
EPOCHS = 12
with tqdm(total=EPOCHS * len(loader), desc="training") as pbar:
    for epoch in range(EPOCHS):
        net.train()
        total = 0.0
        for features, target in loader:
            output = net(features).squeeze(1)
            loss = mse(output, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(features)
            pbar.update(1)
        losses.append(total / len(train_set))
        pbar.set_postfix({"mse": f"{losses[-1]:.3f}"})

print(f"first mse {losses[0]:.4f} last mse {losses[-1]:.4f}")
print(f"test r2 before {r2_before:.3f} after {r2():.3f}")
