# semi-supervised digits: 100 labels, the rest without
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn import datasets, model_selection

torch.manual_seed(2)
X, y = datasets.load_digits(return_X_y=True)
X = torch.FloatTensor(X).div(16).view(-1, 1, 8, 8)
y = torch.LongTensor(y)
rest, test = model_selection.train_test_split(range(len(X)), test_size=0.3, random_state=2, stratify=y)
lab, unlab = model_selection.train_test_split(rest, train_size=100, random_state=2, stratify=y[rest])
x_l, y_l, x_u, x_t, y_t = X[lab], y[lab], X[unlab], X[test], y[test]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def evaluate(net):
    net.eval()
    with torch.no_grad():
        return (net(x_t).argmax(1) == y_t).float().mean().item()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(60):
    net.train()
    for idx in torch.randperm(len(x_l)).split(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x_l[idx]), y_l[idx])
        loss.backward()
        optimizer.step()
    if epoch % 20 == 0 or epoch == 59:
        print(f"supervised epoch {epoch} loss {loss.item():.3f} test acc {evaluate(net):.3f}")

for epoch in range(12):
    alpha = min(1.0, epoch / 4)
    kept = total = 0
    for idx in torch.randperm(len(x_u)).split(64):
        net.eval()
        with torch.no_grad():
            conf = net(x_u[idx]).softmax(1).max(dim=1)
        keep = conf.values > 0.95
        pseudo = conf.indices[keep]
        kept, total = kept + int(keep.sum()), total + len(idx)
        net.train()
        pick = torch.randint(0, len(x_l), (25,))
        loss = F.cross_entropy(net(x_l[pick]), y_l[pick])
        if keep.any():
            loss = loss + alpha * F.cross_entropy(net(x_u[idx][keep]), pseudo)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"pseudo epoch {epoch} alpha {alpha:.2f} kept {kept}/{total} loss {loss.item():.3f} test acc {evaluate(net):.3f}")
