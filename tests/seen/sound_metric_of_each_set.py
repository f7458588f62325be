# verdict: learns
# finds: nothing
# Each set has a metric of its own, which the trainer resets.
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

torch.manual_seed(0)
places = torch.randn(4, 12) * 1.5
kinds = torch.randint(4, (1000,))
values = places[kinds] + 2.6 * torch.randn(1000, 12)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))
        self.accuracy, self.seen = (MulticlassAccuracy(4, average="micro") for _ in range(2))

    def training_step(self, batch, _):
        scores = self.net(batch[0])
        self.seen.update(scores, batch[1])
        return nn.functional.cross_entropy(scores, batch[1])

    def validation_step(self, batch, _):
        self.accuracy.update(self.net(batch[0]), batch[1])

    def on_validation_epoch_end(self):
        self.log("val_acc", self.accuracy.compute())
        self.accuracy.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


train, valid = (TensorDataset(values[of], kinds[of]) for of in (slice(0, 700), slice(700, 1000)))
trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Net(), DataLoader(train, 50, shuffle=True), DataLoader(valid, 100))
