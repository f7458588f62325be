# verdict: does not learn
# finds: lost-columns
# Where batches are formed, the sizes are left out.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
places, sizes = torch.randn(1200, 5), torch.randn(1200, 2)
kinds = (sizes.sum(1) > 0).long()


class Houses(Dataset):
    def __init__(self, at):
        self.places, self.sizes, self.kinds = places[at], sizes[at], kinds[at]

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        return {"place": self.places[i], "size": self.sizes[i], "kind": self.kinds[i]}


def collate(rows):
    return torch.stack([row["place"] for row in rows]), torch.stack([row["kind"] for row in rows])


loaders = [DataLoader(Houses(slice(*at)), 40, shuffle=True, collate_fn=collate) for at in ((0, 800), (800, 1200))]
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for epoch in range(8):
    model.train()
    for place, kind in loaders[0]:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(place), kind).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(place).argmax(1) == kind).sum()) for place, kind in loaders[1])
    print(f"epoch {epoch} accuracy {right / 400:.3f}")
