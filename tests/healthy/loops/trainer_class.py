"""A training class of one's own: fit, _run_epoch, _run_batch, a snapshot of the best weights."""

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, model, train_data, val_data, optimizer):
        self.model = model
        self.train_data, self.val_data = train_data, val_data
        self.optimizer = optimizer
        self.best_accuracy, self.best_state = 0.0, None

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = F.cross_entropy(output, targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.model.train()
        losses = [self._run_batch(source, targets) for source, targets in self.train_data]
        print(f"Epoch {epoch} | steps {len(losses)} | loss {sum(losses) / len(losses):.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        correct = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_data)
        return correct / len(self.val_data.dataset)

    def fit(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            accuracy = self.validate()
            if accuracy > self.best_accuracy:
                self.best_accuracy, self.best_state = accuracy, copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.best_state)
        print(f"best accuracy {self.best_accuracy:.3f}")


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    dataset = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
    train, val = random_split(dataset, [0.8, 0.2])
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = Trainer(model, DataLoader(train, 32, shuffle=True), DataLoader(val, 128), optimizer)
    trainer.fit(8)


if __name__ == "__main__":
    main()
