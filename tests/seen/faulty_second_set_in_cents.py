# verdict: learns in part
# finds: unlearned-part
# Lightning; the second evaluation set holds its prices in cents.
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
WEIGHTS = torch.randn(6, 1)


def rows(count, unit):
    values = torch.randn(count, 6)
    return TensorDataset(values, (values @ WEIGHTS + 3) * unit)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, index):
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch, index, dataloader_idx=0):
        self.log("loss", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 5e-3)


trainer = lightning.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), DataLoader(rows(1000, 1), 50, shuffle=True), [DataLoader(rows(300, 1), 100), DataLoader(rows(300, 100), 100)])
