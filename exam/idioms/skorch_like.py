"""A small scikit-learn compatible wrapper in the spirit of skorch, used with a Pipeline."""
import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class MLP(torch.nn.Module):
    def __init__(self, n_in=2, hidden=32, n_out=2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(n_in, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden),
                                          torch.nn.ReLU(), torch.nn.Linear(hidden, n_out))

    def forward(self, X):
        return self.layers(X)


class NeuralNetClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, module=MLP, lr=0.01, max_epochs=20, batch_size=64, valid_fraction=0.2, verbose=1, seed=0):
        self.module = module
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.valid_fraction = valid_fraction
        self.verbose = verbose
        self.seed = seed

    def initialize(self):
        self.module_ = self.module()
        self.optimizer_ = torch.optim.Adam(self.module_.parameters(), lr=self.lr)
        self.criterion_ = torch.nn.CrossEntropyLoss()
        return self

    def train_step(self, Xb, yb):
        self.module_.train()
        self.optimizer_.zero_grad()
        loss = self.criterion_(self.module_(Xb), yb)
        loss.backward()
        self.optimizer_.step()
        return loss.item()

    def validation_step(self, Xb, yb):
        self.module_.eval()
        with torch.no_grad():
            logits = self.module_(Xb)
            return self.criterion_(logits, yb).item(), (logits.argmax(1) == yb).float().mean().item()

    def fit(self, X, y):
        torch.manual_seed(self.seed)
        self.classes_ = np.unique(y)
        X, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(np.searchsorted(self.classes_, y))
        order = torch.randperm(len(X))
        cut = int(len(X) * self.valid_fraction)
        valid, train = order[:cut], order[cut:]
        self.initialize()
        self.history_ = []
        for epoch in range(self.max_epochs):
            losses = [self.train_step(X[i], y[i]) for i in train[torch.randperm(len(train))].split(self.batch_size)]
            valid_loss, valid_acc = self.validation_step(X[valid], y[valid])
            self.history_.append({"epoch": epoch, "train_loss": float(np.mean(losses)), "valid_loss": valid_loss, "valid_acc": valid_acc})
            if self.verbose and epoch % 5 == 0:
                print("  ".join(f"{k} {v:.4f}" if k != "epoch" else f"{k} {v:3d}" for k, v in self.history_[-1].items()))
        return self

    def predict_proba(self, X):
        self.module_.eval()
        with torch.no_grad():
            return self.module_(torch.as_tensor(X, dtype=torch.float32)).softmax(-1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


X, y = make_moons(600, noise=0.12, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
net = NeuralNetClassifier(lr=0.005, max_epochs=26)
pipe = make_pipeline(StandardScaler(), net)
pipe.fit(X_train, y_train)
h = pipe[-1].history_
print(f"train loss {h[0]['train_loss']:.3f} -> {h[-1]['train_loss']:.3f}; test accuracy {pipe.score(X_test, y_test):.3f}")
