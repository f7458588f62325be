import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
if "pl" in sys.argv:
    import pytorch_lightning as L
else:
    import lightning as L

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long() * (2 if "faulty" in sys.argv else 1)

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))  # expect: label-out-of-range
    def forward(self, x):
        return self.net(x)
    def training_step(self, batch, batch_idx):
        a, b = batch
        loss = nn.functional.cross_entropy(self(a), b)
        self.log("loss", loss)
        return loss
    def validation_step(self, batch, batch_idx):
        a, b = batch
        self.log("right", (self(a).argmax(1) == b).float().mean())
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)

train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=32)
if "api" in sys.argv:
    import trainwright
    from trainwright.report import json

    print(json.render(trainwright.check(Net(), train, held)))
else:
    L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False).fit(Net(), train, held)
