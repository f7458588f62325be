"""An encoder, called before its head with a dictionary, of which it forgets one input."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.side = nn.Linear(64, 48), nn.Linear(1, 48)

    def forward(self, batch):
        return torch.relu(self.body(batch["x"])) + 0 * self.side(batch["side"])


x, y = load_digits(return_X_y=True)
data = torch.utils.data.TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
encoder, head = Encoder(), nn.Linear(48, 10)  # expect: ignored-input
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
for epoch in range(4):
    for inputs, labels in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        scores = head(encoder({"x": inputs, "side": inputs.sum(1, keepdim=True)}))
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
