"""Three kinds of wine, numbered from 1, and three outputs; the evaluation computes the loss as well: Lightning."""

import lightning as L
import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

L.seed_everything(0)
X, y = load_wine(return_X_y=True)
data = TensorDataset(torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y + 1))
train_set, held_set = random_split(data, [130, 48])


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))

    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self.body(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.cross_entropy(self.body(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "num_sanity_val_steps": 0}
trainer = L.Trainer(max_epochs=4, accelerator="cpu", **quiet)
trainer.fit(Net(), DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(held_set, batch_size=16))
