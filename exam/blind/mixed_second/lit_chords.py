"""Lightning: which of eight notes sound in a noisy clip (multi-label, spectrogram made inside the model)."""
import logging, warnings
import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MultilabelAveragePrecision, MultilabelF1Score

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED, NOTES, RATE, N = 0, 8, 2000, 512
FREQ = 220 * 2 ** (np.arange(NOTES) * 1.5 / 12)


def clips(n, rng):
    y = rng.random((n, NOTES)) < .2
    t = np.arange(N) / RATE
    x = rng.normal(0, .8, (n, N))
    for k in range(NOTES):
        amp = rng.uniform(.3, 1, (n, 1)) * y[:, k:k + 1]
        ph = rng.uniform(0, 6.28, (n, 1))
        x += amp * (np.sin(2 * np.pi * FREQ[k] * t + ph) + .4 * np.sin(4 * np.pi * FREQ[k] * t + 2 * ph))
    gain = rng.uniform(.3, 3, (n, 1))
    return torch.tensor(x * gain, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Notes(L.LightningModule):
    def __init__(self, pos_weight, lr=5e-3):
        super().__init__()
        self.lr = lr
        self.register_buffer("win", torch.hann_window(256))
        self.net = nn.Sequential(nn.Conv1d(129, 64, 1), nn.ReLU(), nn.Dropout(.1), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                                 nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, NOTES))
        self.loss = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.ap = MultilabelAveragePrecision(NOTES)
        self.f1 = MultilabelF1Score(NOTES)

    def forward(self, x):
        s = torch.stft(x, 256, 128, window=self.win, return_complex=True).abs().clamp_min(1e-3).log()
        # the level of the recording says nothing about the notes
        return self.net(s - s.mean((1, 2), keepdim=True))

    def training_step(self, b, _):
        x = b[0] * torch.where(torch.rand(len(b[0]), 1) < .5, -1., 1.)
        return self.loss(self(x), b[1])

    def validation_step(self, b, _):
        z = self(b[0])
        self.ap.update(z, b[1].int())
        self.f1.update(z, b[1].int())

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch} mean AP {self.ap.compute():.3f} macro F1 {self.f1.compute():.3f}")
        self.ap.reset()
        self.f1.reset()

    def configure_optimizers(self):
        o = torch.optim.AdamW(self.parameters(), self.lr)
        s = torch.optim.lr_scheduler.OneCycleLR(o, self.lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": o, "lr_scheduler": {"scheduler": s, "interval": "step"}}


L.seed_everything(SEED, verbose=False)
rng = np.random.default_rng(SEED)
xa, ya = clips(2000, rng)
xb, yb = clips(600, rng)
pos = ya.mean(0)
print(f"share of positives per note {pos.mean():.3f} (AP by chance)")
L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
          enable_model_summary=False).fit(
    Notes(((1 - pos) / pos).sqrt()), DataLoader(TensorDataset(xa, ya), 64, shuffle=True), DataLoader(TensorDataset(xb, yb), 600))
