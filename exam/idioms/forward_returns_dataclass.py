from dataclasses import dataclass, fields

import torch
from sklearn.datasets import load_iris
from torch import Tensor, nn

torch.manual_seed(1)
iris = load_iris()
features = torch.tensor(iris.data, dtype=torch.float32)
features = (features - features.mean(0)) / features.std(0)
species = torch.tensor(iris.target) + 1  # the file codes the species 1, 2, 3


@dataclass
class IrisBatch:
    features: Tensor
    species: Tensor

    def to(self, device):
        return IrisBatch(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})

    def __len__(self):
        return len(self.species)


@dataclass
class Output:
    logits: Tensor
    loss: Tensor | None = None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 24), nn.GELU(), nn.Linear(24, 3))

    def forward(self, features, species=None) -> Output:
        logits = self.net(features)
        if species is None:
            return Output(logits)
        target = species - 1
        return Output(logits, nn.functional.cross_entropy(logits, target))


def batches(index, size):
    for part in index[torch.randperm(len(index))].split(size):
        yield IrisBatch(features[part], species[part])


device = torch.device("cpu")
index = torch.randperm(150)
train, test = index[:110], index[110:]
model = Model().to(device)
optim = torch.optim.RMSprop(model.parameters(), lr=3e-3)
for epoch in range(1, 21):
    epoch_loss = 0.0
    for batch in batches(train, 16):
        batch = batch.to(device)
        optim.zero_grad()
        out = model(batch.features, batch.species)
        out.loss.backward()
        optim.step()
        epoch_loss += out.loss.item() * len(batch)
    if epoch % 5 == 0:
        with torch.no_grad():
            pred = model(features[test]).logits.argmax(-1) + 1
        acc = (pred == species[test]).float().mean()
        print(f"epoch {epoch} loss {epoch_loss / len(train):.4f} acc {acc:.3f}")
print(f"FINAL loss {epoch_loss / len(train):.4f} acc {acc:.3f}")
