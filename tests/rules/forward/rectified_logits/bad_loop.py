"""A loop of one's own over a model whose forward calls relu on one score, before a loss that takes scores."""

# slow

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
data = TensorDataset(torch.tensor(StandardScaler().fit_transform(x)).float(), torch.tensor(y).float())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(30, 16), nn.Linear(16, 1)

    def forward(self, x):
        return F.relu(self.last(torch.tanh(self.first(x)))).squeeze(1)  # expect: rectified-logits


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for rows, labels in DataLoader(data, batch_size=32, shuffle=True):
    loss = F.binary_cross_entropy_with_logits(net(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
