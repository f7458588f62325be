"""Series of different lengths stacked as they are, and convolutions in a plain list."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Waves(Dataset):
    """Slow and fast waves of 30 to 60 points."""

    def __init__(self, rows):
        self.rows = []
        for i in range(rows):
            label = i % 2
            t = torch.arange(int(torch.randint(30, 61, ()))) * (0.3 if label == 0 else 0.8)
            self.rows.append((torch.sin(t + 6.3 * torch.rand(())) + 0.2 * torch.randn(len(t)), label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def stack(samples):
    series = torch.stack([s for s, _ in samples])  # expect: ragged-batch
    return series.unsqueeze(1), torch.tensor([label for _, label in samples])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = [  # expect: unregistered-parameters
            nn.Conv1d(1, 12, 5, padding=2),
            nn.Conv1d(12, 12, 5, padding=2),
        ]
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        for conv in self.convs:
            x = torch.relu(conv(x))
        return self.head(x.mean(dim=-1))


model = ConvNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loader = DataLoader(Waves(600), batch_size=30, shuffle=True, collate_fn=stack)
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
