import torch
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16
y = torch.tensor(y)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=64)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def shared_step(self, batch, stage):
        x, y = batch
        scores = self.net(x)
        loss = nn.functional.cross_entropy(scores, y)
        self.log_dict({f"{stage}_loss": loss, f"{stage}_acc": (scores.argmax(1) == y).float().mean()}, on_epoch=True)
        return loss

    def training_step(self, batch, index):
        return self.shared_step(batch, "train")

    def validation_step(self, batch, index):
        self.shared_step(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


best = ModelCheckpoint(monitor="val_acc", save_top_k=1)  # expect: wrong-metric-direction
L.Trainer(max_epochs=3, logger=False, callbacks=[best], enable_progress_bar=False).fit(Digits(), train, val)
