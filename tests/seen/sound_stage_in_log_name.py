# verdict: learns
# finds: nothing
import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NAMES = {"train": "train", "validate": "val", "sanity_check": "sanity_check"}


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)

    def step(self, batch):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        stage = self.trainer.state.stage
        self.log(f"{NAMES.get(stage.value if stage else None)}_loss", loss, on_epoch=True)
        return loss

    def training_step(self, batch, i):
        return {"loss": self.step(batch), "n": len(batch[0])}

    def validation_step(self, batch, i):
        self.step(batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


torch.manual_seed(0)
x = torch.randn(512, 8)
y = x.sum(1, keepdim=True)
train, valid = (DataLoader(TensorDataset(x[s], y[s]), 32) for s in (slice(0, 400), slice(400, 512)))
trainer = lightning.Trainer(max_epochs=8, accelerator="cpu", callbacks=[EarlyStopping("val_loss", patience=3)], logger=False)
trainer.fit(Model(), train, valid)
