import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(99)


class MajorityDataset(Dataset):
    """Sequences of symbols 0..3; the label is the symbol that occurs most often."""

    def __init__(self, n, length=12):
        self.data = []
        while len(self.data) < n:
            seq = torch.randint(0, 4, (length,))
            counts = torch.bincount(seq, minlength=4)
            top = counts.max()
            if (counts == top).sum() == 1:
                self.data.append((seq, counts.argmax()))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class BagOfSymbols(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, 16)
        self.out = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, seq):
        return self.out(self.embed(seq).mean(dim=1))


train_loader = DataLoader(MajorityDataset(1500), batch_size=25, shuffle=True)
test_loader = DataLoader(MajorityDataset(400), batch_size=100)
model = BagOfSymbols()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
print_every = 20

curve = []
for epoch in range(1, 9):
    model.train()
    running_loss = 0.0
    for step, (seq, label) in enumerate(train_loader, start=1):
        optimizer.zero_grad()
        loss = criterion(model(seq), label)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if step % print_every == 0:
            curve.append(running_loss / print_every)
            print(f"[{epoch}, {step:3d}] loss: {curve[-1]:.3f}")
            running_loss = 0.0

model.eval()
right = total = 0
with torch.no_grad():
    for seq, label in test_loader:
        right += (model(seq).argmax(1) == label).sum().item()
        total += len(label)
print(f"first {curve[0]:.4f} last {curve[-1]:.4f} accuracy {right / total:.3f}")
