import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(6)
np.random.seed(6)

digits = load_digits()
features = (digits.data / 16.0).astype(np.float32)
target = digits.target
perm = np.random.permutation(len(target))
x_train, y_train = features[perm[:1400]], target[perm[:1400]]
x_test, y_test = torch.from_numpy(features[perm[1400:]]), torch.from_numpy(target[perm[1400:]])


def batch_generator(x, y, batch_size):
    index = np.random.permutation(len(x))
    x, y = x[index], y[index]
    for start in range(0, len(x), batch_size):
        yield torch.from_numpy(x[start:start + batch_size]), torch.from_numpy(y[start:start + batch_size])


w1 = (torch.randn(64, 50) * (2 / 64) ** 0.5).requires_grad_()
b1 = torch.zeros(50, requires_grad=True)
w2 = (torch.randn(50, 10) * (1 / 50) ** 0.5).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)
params = [w1, b1, w2, b2]


def net(x):
    return torch.relu(x @ w1 + b1) @ w2 + b2


lr = 0.2
for epoch in range(10):
    losses = []
    for xb, yb in batch_generator(x_train, y_train, 40):
        loss = F.cross_entropy(net(xb), yb)
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, g in zip(params, grads):
                p -= lr * g
        losses.append(loss.item())
    if epoch in (0, 9):
        print(f"epoch {epoch} mean loss {np.mean(losses):.4f}")

with torch.no_grad():
    print(f"test accuracy {(net(x_test).argmax(1) == y_test).float().mean().item():.4f}")
