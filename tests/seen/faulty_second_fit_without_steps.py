# verdict: learns in part
# finds: weights-stand-still
# tells: makes no update
# The trainer has made its max_steps when it is asked to adapt the model to the second site.
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


def site(count, sign):
    values = torch.randn(count, 8)
    return DataLoader(TensorDataset(values, (sign * values[:, 0] + values[:, 1] > 0).long()), 32, shuffle=True)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_acc", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


trainer = lightning.Trainer(
    max_steps=200, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu"
)
model = Net()
trainer.fit(model, site(800, 1), site(300, 1))
trainer.fit(model, site(800, -1), site(300, -1))  # finds: weights-stand-still
