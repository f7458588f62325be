# verdict: learns
# finds: numbers-disagree
# tells: it is the mean of the batches' own scores
# Lightning joins what each batch logs; a batch without a rare row has an F1 of 0.
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.functional.classification import binary_f1_score

torch.manual_seed(4)


def leaks(count):
    pressure = torch.randn(count, 6)
    return TensorDataset(pressure, (pressure[:, 0] + pressure[:, 1] > 2.2).float())


class Detector(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))

    def training_step(self, batch, index):
        values, leak = batch
        return nn.functional.binary_cross_entropy_with_logits(self.net(values).squeeze(1), leak)

    def validation_step(self, batch, index):
        values, leak = batch
        self.log("val_f1", binary_f1_score(self.net(values).squeeze(1).sigmoid(), leak.int()))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


trainer = lightning.Trainer(
    max_epochs=6, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu"
)
trainer.fit(Detector(), DataLoader(leaks(1200), 40, shuffle=True), DataLoader(leaks(600), 20))
