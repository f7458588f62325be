"""Manual optimization with two optimizers: a denoising autoencoder."""
import logging
import warnings

import lightning.pytorch as pl
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class DenoisingAE(pl.LightningModule):
    def __init__(self, noise=0.2):
        super().__init__()
        self.automatic_optimization = False
        self.noise = noise
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 24))
        self.decoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64))
        self.train_history, self.val_history = [], []

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        opt_e, opt_d = self.optimizers()
        recon = self(batch + self.noise * torch.randn_like(batch))
        loss = nn.functional.mse_loss(recon, batch)
        opt_e.zero_grad()
        opt_d.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(opt_e, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_e.step()
        opt_d.step()
        self.log("train_loss", loss, on_epoch=True, on_step=False)

    def on_train_epoch_end(self):
        self.train_history.append(self.trainer.callback_metrics["train_loss"].item())

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.mse_loss(self(batch), batch))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.val_history.append(self.trainer.callback_metrics["val_loss"].item())

    def configure_optimizers(self):
        return (torch.optim.Adam(self.encoder.parameters(), lr=2e-3), torch.optim.Adam(self.decoder.parameters(), lr=2e-3))


def main():
    pl.seed_everything(0, verbose=False)
    x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    model = DenoisingAE()
    trainer = pl.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False)
    trainer.fit(model, DataLoader(x[:1400], batch_size=64, shuffle=True), DataLoader(x[1400:], batch_size=200))
    print(f"train mse {model.train_history[0]:.4f} -> {model.train_history[-1]:.4f}, val mse {model.val_history[0]:.4f} -> {model.val_history[-1]:.4f}")


if __name__ == "__main__":
    main()
