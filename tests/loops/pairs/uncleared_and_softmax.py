"""A softmax before CrossEntropyLoss, and no zero_grad."""

import torch
from sklearn.datasets import load_iris
from torch import nn

torch.manual_seed(0)
iris = load_iris()
X = torch.tensor((iris.data - iris.data.mean(0)) / iris.data.std(0), dtype=torch.float32)
y = torch.tensor(iris.target)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
model = nn.Sequential(net, nn.Softmax(dim=-1))  # expect: double-activation
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
for epoch in range(60):
    outputs = model(X)
    loss = criterion(outputs, y)
    loss.backward()  # expect: uncleared-gradients
    optimizer.step()
    if epoch % 10 == 0:
        print(epoch, loss.item(), (outputs.argmax(1) == y).float().mean().item())
