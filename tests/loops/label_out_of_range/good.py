"""Three kinds of wine and three outputs, in a training class."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn, optim


class WineModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(13, 32)
        self.output = nn.Linear(32, 3)

    def forward(self, x):
        return self.output(torch.relu(self.hidden(x)))


class Learner:
    def __init__(self, model, lr):
        self.model = model
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = optim.Adam(model.parameters(), lr=lr)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs, batch_size=16):
        for epoch in range(epochs):
            order = torch.randperm(len(x))
            losses = [self.step(x[idx], y[idx]) for idx in order.split(batch_size)]
            print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    features, cultivar = load_wine(return_X_y=True)
    x = torch.tensor(StandardScaler().fit_transform(features), dtype=torch.float32)
    Learner(WineModel(), lr=5e-3).fit(x, torch.tensor(cultivar), epochs=12)
