import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)

x = torch.linspace(-3, 3, 160).unsqueeze(1)
y = torch.sin(2 * x) * torch.exp(-0.2 * x ** 2) + 0.02 * torch.randn_like(x)
held = torch.zeros(160, dtype=torch.bool)
held[torch.randperm(160)[:40]] = True
x_train, y_train, x_test, y_test = x[~held], y[~held], x[held], y[held]

model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
criterion = nn.MSELoss()
optimizer = optim.LBFGS(model.parameters(), lr=0.8, max_iter=10, line_search_fn="strong_wolfe")

for i in range(15):
    def closure():
        optimizer.zero_grad()
        out = model(x_train)
        loss = criterion(out, y_train)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    if i % 7 == 0:
        print("STEP", i, "loss:", round(loss.item(), 6))

with torch.no_grad():
    print("test loss:", round(criterion(model(x_test), y_test).item(), 6))
