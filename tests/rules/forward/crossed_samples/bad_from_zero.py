"""A softmax over the lines of a batch, behind a layer that begins at zero: nothing of it shows before the training."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.gate, self.head = nn.Linear(64, 32), nn.Linear(32, 1), nn.Linear(32, 10)
        nn.init.zeros_(self.gate.weight)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        share = torch.softmax(self.gate(hidden), dim=0) * len(hidden)  # expect: crossed-samples
        return self.head(share * hidden)


x, y = load_digits(return_X_y=True)
data = torch.utils.data.TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for inputs, labels in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
