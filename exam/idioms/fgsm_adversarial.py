import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn, optim

torch.manual_seed(0)
EPS = 0.4
X, y = load_breast_cancer(return_X_y=True)
Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
mu, sd = Xa.mean(0), Xa.std(0)
Xa, Xb = torch.tensor((Xa - mu) / sd, dtype=torch.float), torch.tensor((Xb - mu) / sd, dtype=torch.float)
ya, yb = torch.tensor(ya), torch.tensor(yb)

model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))
loss_fn = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=3e-3)


def fgsm(x, y, eps):
    x = x.clone().detach().requires_grad_(True)
    loss = loss_fn(model(x), y)
    grad, = torch.autograd.grad(loss, x)
    return (x + eps * grad.sign()).detach()


def training_attack(x, y):
    return fgsm(x, y, EPS)


def report(tag):
    model.eval()
    adv = fgsm(Xb, yb, EPS)
    with torch.no_grad():
        clean = (model(Xb).argmax(1) == yb).float().mean().item()
        robust = (model(adv).argmax(1) == yb).float().mean().item()
    model.train()
    print(f"{tag}: clean accuracy {clean:.3f} robust accuracy {robust:.3f}")


report("start")
for epoch in range(40):
    running = 0.0
    for i in torch.randperm(len(Xa)).split(32):
        x_adv = training_attack(Xa[i], ya[i])
        optimizer.zero_grad()
        loss = 0.5 * loss_fn(model(Xa[i]), ya[i]) + 0.5 * loss_fn(model(x_adv), ya[i])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(i)
    if epoch % 10 == 0 or epoch == 39:
        report(f"epoch {epoch} loss {running / len(Xa):.4f}")
