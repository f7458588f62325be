"""An LSTM on sine waves; nothing ever clears the gradients."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
phase = rng.uniform(0, 2 * np.pi, (600, 1))
waves = torch.tensor(np.sin(phase + 0.35 * np.arange(25)), dtype=torch.float32)
inputs, targets = waves[:, :-1].unsqueeze(2), waves[:, -1:]


class NextValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.linear = nn.Linear(24, 1)

    def forward(self, x):
        output, _ = self.lstm(x)
        return self.linear(output[:, -1])


model = NextValue()
loss_function = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    permutation = torch.randperm(len(inputs))
    for start in range(0, len(inputs), 40):
        index = permutation[start : start + 40]
        prediction = model(inputs[index])
        loss = loss_function(prediction, targets[index])
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f} of variance {targets.var():.2f}")
