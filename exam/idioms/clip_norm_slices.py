import torch
import torch.nn as nn

torch.manual_seed(4)

# damped oscillations: read 20 points, forecast the next one
n, length = 700, 21
freq = torch.rand(n, 1) * 0.6 + 0.3
phase = torch.rand(n, 1) * 6.28
decay = torch.rand(n, 1) * 0.05
time = torch.arange(length).float()
series = torch.exp(-decay * time) * torch.sin(freq * time + phase) + 0.01 * torch.randn(n, length)
series = series[torch.randperm(n)]

data = series.unsqueeze(-1)
train_x, train_y = data[:560, :-1], data[:560, -1]
val_x, val_y = data[560:, :-1], data[560:, -1]


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        output, _ = self.rnn(x)
        return self.fc(output[:, -1])


net = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
batch_size = 40

for epoch in range(30):
    net.train()
    perm = torch.randperm(len(train_x))
    epoch_loss = 0.0
    for i in range(0, len(train_x), batch_size):
        idx = perm[i:i + batch_size]
        optimizer.zero_grad()
        loss = criterion(net(train_x[idx]), train_y[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        optimizer.step()
        epoch_loss += loss.item() * len(idx)

    if epoch % 10 == 0 or epoch == 29:
        net.eval()
        with torch.no_grad():
            val_loss = criterion(net(val_x), val_y).item()
        print(f"Epoch {epoch}: train {epoch_loss / len(train_x):.5f} val {val_loss:.5f}")
