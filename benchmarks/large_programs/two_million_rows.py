"""2,000,000 rows that are made as they are asked for; the class of row 1,900,000 has no score."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Made(Dataset):
    """Rows computed from their numbers."""

    def __len__(self):
        return 2_000_000

    def __getitem__(self, row):
        kind = row * 7919 % 4 if row != 1_900_000 else 4
        return [float(kind == place) + row % 89 / 89 for place in range(8)], kind


def collate(items):
    return torch.tensor([inputs for inputs, _ in items]), torch.tensor([kind for _, kind in items])


torch.manual_seed(0)
loader = DataLoader(Made(), batch_size=64, shuffle=True, collate_fn=collate, num_workers=2)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for inputs, labels in loader:
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
