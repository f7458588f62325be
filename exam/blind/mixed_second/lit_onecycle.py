"""Lightning: digits with a one-cycle schedule."""
import logging, warnings
import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED = 0


class DigitsData(L.LightningDataModule):
    def __init__(self, batch=64):
        super().__init__()
        self.batch = batch

    def setup(self, stage=None):
        x, y = load_digits(return_X_y=True)
        x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
        tr, te = train_test_split(torch.arange(len(x)), test_size=.3, random_state=SEED, stratify=y)
        y = torch.tensor(y)
        self.train, self.val = TensorDataset(x[tr], y[tr]), TensorDataset(x[te], y[te])

    def train_dataloader(self):
        return DataLoader(self.train, self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, 256)


class Lit(L.LightningModule):
    def __init__(self, max_lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))
        self.history = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if not self.trainer.sanity_checking:
            lr = self.trainer.optimizers[0].param_groups[0]["lr"]
            self.history.append(float(m["val_acc"]))
            print(f"epoch {self.current_epoch} lr {lr:.5f} val_acc {float(m['val_acc']):.3f}")

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.max_lr / 25, momentum=.9, weight_decay=1e-4)
        sched = torch.optim.lr_scheduler.OneCycleLR(
            opt, max_lr=self.hparams.max_lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched}}


if __name__ == "__main__":
    L.seed_everything(SEED, verbose=False)
    model = Lit()
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, DigitsData())
    print(f"final validation accuracy {model.history[-1]:.3f}")
