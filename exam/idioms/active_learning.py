"""Pool-based active learning: in each round train from scratch, then ask for the most uncertain samples."""
import numpy as np
import torch
from torch import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

rng = np.random.RandomState(0)
torch.manual_seed(0)
data = load_digits()
X_train, X_test, y_train, y_test = train_test_split(data.data.astype(np.float32) / 16, data.target, test_size=0.3, random_state=1)


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def fit(self, X, y, epochs=30):
        X, y = torch.from_numpy(X), torch.from_numpy(y)
        opt = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.net.train()
        for _ in range(epochs):
            for idx in torch.randperm(len(X)).split(32):
                opt.zero_grad()
                loss = nn.functional.cross_entropy(self.net(X[idx]), y[idx])
                loss.backward()
                opt.step()
        return loss.item()

    @torch.no_grad()
    def predict_proba(self, X):
        self.net.eval()
        return self.net(torch.from_numpy(X)).softmax(1).numpy()


start = rng.choice(len(X_train), 40, replace=False)
X_lab, y_lab = X_train[start], y_train[start]
X_pool, y_pool = np.delete(X_train, start, axis=0), np.delete(y_train, start, axis=0)

for round_ in range(8):
    learner = Learner()
    loss = learner.fit(X_lab, y_lab)
    acc = (learner.predict_proba(X_test).argmax(1) == y_test).mean()
    print(f"round {round_}: {len(X_lab)} labels, loss {loss:.3f}, test accuracy {acc:.3f}")
    proba = learner.predict_proba(X_pool)
    entropy = -(proba * np.log(proba + 1e-12)).sum(1)
    query = np.argsort(entropy)[-40:]
    X_lab = np.concatenate([X_lab, X_pool[query]])
    y_lab = np.concatenate([y_lab, y_pool[query]])
    X_pool, y_pool = np.delete(X_pool, query, axis=0), np.delete(y_pool, query, axis=0)
