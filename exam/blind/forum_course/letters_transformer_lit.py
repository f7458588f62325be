"""Lecture 9 - a transformer encoder that counts, written with Lightning.

Task: given a string of letters, predict for each position how often that letter
occurs in the string (a popular toy problem to look at attention).
"""
import argparse
import logging
import math
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*num_workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)

HPARAMS = dict(
    vocab=8, length=16, max_count=6, d_model=48, heads=4, layers=2,
    lr=3e-3, warmup=40, batch_size=50, epochs=12, n_train=2000, n_val=500,
)


def make_strings(n, vocab, length, max_count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(0, vocab, (n, length), generator=g)
    counts = (x.unsqueeze(2) == x.unsqueeze(1)).sum(-1)
    return x, counts.clamp(max=max_count) - 1


class CountingData(L.LightningDataModule):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp

    def setup(self, stage=None):
        hp = self.hp
        shape = (hp["vocab"], hp["length"], hp["max_count"])
        self.train_set = TensorDataset(*make_strings(hp["n_train"], *shape, seed=1))
        self.val_set = TensorDataset(*make_strings(hp["n_val"], *shape, seed=2))

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hp["batch_size"], shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=250)


class CountingTransformer(L.LightningModule):
    def __init__(self, hp, total_steps):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.Embedding(hp["vocab"], hp["d_model"])
        layer = nn.TransformerEncoderLayer(hp["d_model"], hp["heads"], 2 * hp["d_model"],
                                           dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, hp["layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(hp["d_model"])
        self.readout = nn.Linear(hp["d_model"], hp["max_count"])

    def forward(self, x):
        h = self.emb(x) * math.sqrt(self.hparams.hp["d_model"])
        return self.readout(self.norm(self.encoder(h)))

    def _step(self, batch, stage):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits.transpose(1, 2), y)
        acc = (logits.argmax(-1) == y).float().mean()
        self.log(f"{stage}_loss", loss, on_epoch=True, on_step=False)
        self.log(f"{stage}_acc", acc, on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, batch_idx):
        return self._step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._step(batch, "val")

    def configure_optimizers(self):
        hp = self.hparams.hp
        optimizer = torch.optim.AdamW(self.parameters(), lr=hp["lr"], weight_decay=0.01)

        def lr_lambda(step):
            if step < hp["warmup"]:
                return step / hp["warmup"]
            progress = (step - hp["warmup"]) / max(1, self.hparams.total_steps - hp["warmup"])
            return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
        return [optimizer], [scheduler]


class PrintMetrics(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch:2d} train {m['train_loss']:.4f} "
              f"val {m['val_loss']:.4f} acc {m['val_acc']:.4f}")


def main():
    parser = argparse.ArgumentParser()
    for key in ("lr", "epochs", "warmup", "batch_size"):
        parser.add_argument(f"--{key}", type=type(HPARAMS[key]), default=HPARAMS[key])
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    hp = {**HPARAMS, **{k: v for k, v in vars(args).items() if k in HPARAMS}}
    L.seed_everything(args.seed, verbose=False)

    steps = math.ceil(hp["n_train"] / hp["batch_size"]) * hp["epochs"]
    model = CountingTransformer(hp, total_steps=steps)
    trainer = L.Trainer(max_epochs=hp["epochs"], accelerator="cpu", logger=False, gradient_clip_val=1.0,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=0, callbacks=[PrintMetrics()])
    data = CountingData(hp)
    trainer.fit(model, data)
    result = trainer.validate(model, data, verbose=False)[0]
    print(f"FINAL val_loss={result['val_loss']:.4f} val_acc={result['val_acc']:.4f}")


if __name__ == "__main__":
    main()
