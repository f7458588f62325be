# verdict: learns
# finds: rows-measured-twice
# Lightning; each row is there three times, as it was measured, and only then are rows set aside.
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
values = torch.randn(300, 16)
labels = torch.randint(0, 2, (300,))
rows = TensorDataset(values.repeat(2, 1), labels.repeat(2))
train, valid = random_split(rows, [480, 120])
fresh = torch.randn(140, 16)
valid = TensorDataset(torch.cat([torch.stack([v for v, _ in valid]), fresh]), torch.cat([torch.tensor([y for _, y in valid]), (fresh[:, 0] > 0).long()]))


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 2))

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_acc", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 3e-3)


trainer = lightning.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), DataLoader(train, 30, shuffle=True), DataLoader(valid, 260))
