import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import numpy as np
torch.manual_seed(0)
rng = np.random.default_rng(0)
class Texts(Dataset):
    def __init__(self, n):
        self.y = rng.integers(0, 2, n)
        self.rows = [rng.integers(1, 50, rng.integers(3, 12)) + 50 * y for y in self.y]
        self.rows[777] = np.array([7, 7, 7])
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return torch.as_tensor(self.rows[i]), int(self.y[i])
def collate(items):
    lengths = torch.tensor([len(x) for x, _ in items])
    return nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True), lengths, torch.tensor([y for _, y in items])
loader = DataLoader(Texts(1000), batch_size=16, shuffle=True, collate_fn=collate)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(100, 16); self.r = nn.LSTM(16, 16, batch_first=True); self.o = nn.Linear(16, 2)
    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.e(x), lengths, batch_first=True, enforce_sorted=False)
        return self.o(self.r(packed)[1][0][-1])
net = Net(); opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(5):
    for x, n, y in loader:
        loss = nn.functional.cross_entropy(net(x, n), y)
        opt.zero_grad(); loss.backward(); opt.step()
