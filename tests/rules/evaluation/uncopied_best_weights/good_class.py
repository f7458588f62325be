import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited, self.best, self.weights = patience, 0, -float("inf"), None

    def __call__(self, score, model):
        if score <= self.best + 1e-4:
            self.waited += 1
        else:
            self.best, self.waited = score, 0
            self.weights = {"model": {k: v.clone() for k, v in model.state_dict().items()}, "score": score}
        return self.waited >= self.patience

    def restore(self, model):
        model.load_state_dict(self.weights["model"])


def main():
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=64)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    stopping = EarlyStopping(patience=3)
    for _ in range(10):
        for inputs, labels in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        with torch.no_grad():
            correct = sum((model(a).argmax(1) == b).sum().item() for a, b in valid)
        if stopping(correct / len(valid.dataset), model):
            break
    stopping.restore(model)


main()
