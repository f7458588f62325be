# Curriculum: count-majority over binary sequences, first short ones, then longer ones.
import torch
import torch.nn as nn

torch.manual_seed(11)
STAGES = [dict(length=4, epochs=4), dict(length=8, epochs=5), dict(length=14, epochs=8)]


def make_set(length, n):
    x = torch.randint(0, 2, (n, length))
    y = x.sum(1)              # how many ones
    return x, y


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(2, 8)
        self.gru = nn.GRU(8, 48, batch_first=True)
        self.fc = nn.Linear(48, 15)

    def forward(self, x):
        _, h = self.gru(self.emb(x))
        return self.fc(h[-1])


net = Counter()
optimizer = torch.optim.Adam(net.parameters(), lr=6e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.93)
criterion = nn.CrossEntropyLoss()
test_x, test_y = make_set(14, 1000)

for number, stage in enumerate(STAGES, 1):
    x, y = make_set(stage["length"], 2000)
    for epoch in range(stage["epochs"]):
        net.train()
        perm, total = torch.randperm(len(x)), 0.0
        for i in range(0, len(x), 50):
            idx = perm[i:i + 50]
            optimizer.zero_grad()
            loss = criterion(net(x[idx]), y[idx])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(idx)
        scheduler.step()
        net.eval()
        with torch.no_grad():
            acc = (net(test_x).argmax(1) == test_y).float().mean().item()
        print(f"stage {number} (length {stage['length']}) epoch {epoch} loss {total / len(x):.3f} "
              f"lr {scheduler.get_last_lr()[0]:.2e} accuracy on the long test set {acc:.3f}")
