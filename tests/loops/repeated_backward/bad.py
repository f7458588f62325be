"""A hidden state handed on from batch to batch with its graph."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.arange(0, 2400) * 0.15
series = (torch.sin(t) + 0.5 * torch.sin(2.3 * t)).view(6, 400, 1)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x, hidden):
        out, hidden = self.gru(x, hidden)
        return self.head(out), hidden


model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.MSELoss()
for epoch in range(10):
    hidden = torch.zeros(1, 6, 24)
    losses = []
    for i in range(0, 380, 20):
        x, y = series[:, i : i + 20], series[:, i + 1 : i + 21]
        output, hidden = model(x, hidden)  # expect: repeated-backward
        loss = criterion(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
