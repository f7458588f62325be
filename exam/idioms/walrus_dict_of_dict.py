import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)


class TwoSource(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.num = torch.randn(n, 6, generator=g)
        self.cat = torch.randint(0, 12, (n,), generator=g)
        score = torch.stack(
            [self.num[:, 0] + 0.3 * (self.cat % 3), self.num[:, 1] * self.num[:, 2], self.num[:, 3] + (self.cat > 6).float(), -self.num[:, 4]], 1
        )
        self.label = score.argmax(1)

    def __len__(self):
        return len(self.num)

    def __getitem__(self, i):
        return {"inputs": {"num": self.num[i], "cat": self.cat[i]}, "targets": {"label": self.label[i]}}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 8)
        self.body = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, num, cat):
        logits = self.body(torch.cat([num, self.emb(cat)], 1))
        return {"logits": logits}


train = DataLoader(TwoSource(2000, 1), batch_size=64, shuffle=True)
val = DataLoader(TwoSource(500, 2), batch_size=250)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
criterion = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    it = iter(train)
    running = []
    while (batch := next(it, None)) is not None:
        optimizer.zero_grad()
        out = model(**batch["inputs"])
        loss = criterion(out["logits"], batch["targets"]["label"])
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    model.eval()
    hits = seen = 0
    vl = 0.0
    with torch.no_grad():
        for b in iter(val):
            o = model(**b["inputs"])["logits"]
            vl += criterion(o, b["targets"]["label"]).item() * len(o)
            hits += (o.argmax(1) == b["targets"]["label"]).sum().item()
            seen += len(o)
    print(f"[{epoch}] train {sum(running) / len(running):.4f} val {vl / seen:.4f} acc {hits / seen:.3f}")
print(f"FINAL loss {vl / seen:.4f} acc {hits / seen:.3f}")
