"""Drifts of different lengths stacked as they are for an LSTM, and RMSprop at a rate of 1."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def drifts(count):
    """Steps down, nowhere or up, 20 to 40 of them."""
    for i in range(count):
        length = int(torch.randint(20, 41, ()))
        yield torch.randn(length) + 0.7 * (i % 3 - 1), i % 3


def stack(batch):
    steps, kinds = zip(*batch)
    return torch.stack(steps).unsqueeze(2), torch.tensor(kinds)  # expect: ragged-batch


class Classifier(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(1, hidden, batch_first=True), nn.Linear(hidden, 3)

    def forward(self, steps):
        return self.fc(self.lstm(steps)[0].mean(dim=1))


def main(lr=1.0, epochs=3):
    torch.manual_seed(0)
    loader = DataLoader(list(drifts(480)), batch_size=24, shuffle=True, collate_fn=stack)
    model = Classifier()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)  # expect: excessive-learning-rate
    for epoch in range(epochs):
        for steps, kinds in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(steps), kinds)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
