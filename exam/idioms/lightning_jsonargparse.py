"""python 32_lightning_jsonargparse.py --epochs=5 --lr=0.01 ..."""
import torch
from jsonargparse import CLI
from lightning.pytorch import LightningDataModule, LightningModule, Trainer, seed_everything
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SpiralData(LightningDataModule):
    def __init__(self, n: int = 1500, noise: float = 0.05, batch_size: int = 50):
        super().__init__()
        self.n, self.noise, self.batch_size = n, noise, batch_size

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(0)
        y = torch.randint(0, 3, (self.n,), generator=g)
        r = torch.rand(self.n, generator=g)
        a = y * 2.0944 + 4.0 * r
        x = torch.stack([r * a.cos(), r * a.sin()], 1) + self.noise * torch.randn(self.n, 2, generator=g)
        cut = int(0.8 * self.n)
        self.train, self.val = TensorDataset(x[:cut] * 2, y[:cut]), TensorDataset(x[cut:] * 2, y[cut:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=300)


class SpiralNet(LightningModule):
    def __init__(self, hidden: int = 32, lr: float = 0.01):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 3)
        self.history = []

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        acc = (logits.argmax(1) == y).float().mean()
        self.log_dict({"val_loss": nn.functional.cross_entropy(logits, y), "val_acc": acc})
        self.history.append(acc.item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main(epochs: int = 20, hidden: int = 32, lr: float = 0.01, batch_size: int = 50, seed: int = 3):
    seed_everything(seed, verbose=False)
    model, data = SpiralNet(hidden, lr), SpiralData(batch_size=batch_size)
    trainer = Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, datamodule=data)
    h = model.history
    print(f"val accuracy first {h[0]:.3f} last {h[-1]:.3f}, val loss {trainer.callback_metrics['val_loss'].item():.3f}")


if __name__ == "__main__":
    CLI(main, as_positional=False)
