"""Card-fraud scorer (Lightning): velocity features, weighted loss, early stopping, best-checkpoint scoring."""
import json
import logging
import tempfile
import warnings
from dataclasses import dataclass

import lightning as L
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import QuantileTransformer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("fraud")


@dataclass
class FraudConfig:
    n_tx: int = 14000
    n_cards: int = 700
    hidden: int = 48
    lr: float = 1e-3
    batch_size: int = 256
    max_epochs: int = 14
    patience: int = 3
    seed: int = 41


def load_transactions(cfg):
    rng = np.random.default_rng(cfg.seed)
    card = rng.integers(0, cfg.n_cards, cfg.n_tx)
    spend = rng.lognormal(3, 0.5, cfg.n_cards)
    home = rng.integers(0, 8, cfg.n_cards)
    country = np.where(rng.random(cfg.n_tx) < 0.85, home[card], rng.integers(0, 8, cfg.n_tx))
    amount = spend[card] * rng.lognormal(0, 0.6, cfg.n_tx)
    seconds = np.sort(rng.uniform(0, 90 * 86400, cfg.n_tx))
    hour = (seconds / 3600) % 24
    online = (rng.random(cfg.n_tx) < 0.4).astype(int)
    night = ((hour < 6) | (hour > 22)).astype(int)
    ratio = np.log(amount / spend[card])
    away = (country != home[card]).astype(int)
    logit = -6.2 + 2.2 * away * online + 2.4 * np.maximum(ratio, 0) * night + 1.6 * np.abs(ratio) * away + 0.8 * night
    fraud = (rng.random(cfg.n_tx) < 1 / (1 + np.exp(-logit))).astype(int)
    return pd.DataFrame({"card": card, "ts": pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, "s"),
                         "amount": amount, "country": country, "home": home[card], "online": online,
                         "hour": hour, "fraud": fraud})


def build_features(tx):
    g = tx.groupby("card")
    past_mean = g["amount"].transform(lambda s: s.shift().expanding().mean())
    tx["ratio"] = np.log(tx["amount"] / past_mean.fillna(tx["amount"]))
    tx["gap_h"] = g["ts"].diff().dt.total_seconds().div(3600).fillna(24 * 30)
    tx["away"] = (tx["country"] != tx["home"]).astype(int)
    tx["hour_sin"], tx["hour_cos"] = np.sin(tx["hour"] / 24 * 2 * np.pi), np.cos(tx["hour"] / 24 * 2 * np.pi)
    return ["amount", "ratio", "gap_h"], ["away", "online", "hour_sin", "hour_cos"]


class FraudData(L.LightningDataModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def setup(self, stage=None):
        tx = load_transactions(self.cfg)
        skewed, plain = build_features(tx)
        n = len(tx)
        parts = np.split(np.arange(n), [int(0.6 * n), int(0.8 * n)])
        scaler = QuantileTransformer(output_distribution="normal", n_quantiles=200).fit(tx.iloc[parts[0]][skewed])
        X = np.hstack([scaler.transform(tx[skewed]), tx[plain].to_numpy(float)]).astype(np.float32)
        y = tx["fraud"].to_numpy(np.float32)
        self.sets = [TensorDataset(torch.tensor(X[p]), torch.tensor(y[p])) for p in parts]
        self.n_features = X.shape[1]
        self.pos_weight = float(((y[parts[0]] == 0).sum() / (y[parts[0]] == 1).sum()) ** 0.5)

    def train_dataloader(self):
        return DataLoader(self.sets[0], batch_size=self.cfg.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.sets[1], batch_size=1024)

    def test_dataloader(self):
        return DataLoader(self.sets[2], batch_size=1024)


class FraudModel(L.LightningModule):
    def __init__(self, n_features, hidden, lr, pos_weight):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(0.1),
                                 nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.scores = []

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        return F.binary_cross_entropy_with_logits(self(x), y, pos_weight=torch.tensor(self.hparams.pos_weight))

    def validation_step(self, batch, _):
        x, y = batch
        self.scores.append((self(x).sigmoid(), y))

    def on_validation_epoch_end(self):
        p, y = (torch.cat(t).numpy() for t in zip(*self.scores))
        self.scores.clear()
        if not self.trainer.sanity_checking:
            self.log("val_auc", float(roc_auc_score(y, p)))
            log.info("epoch %d val auc %.4f", self.current_epoch, roc_auc_score(y, p))

    def predict_step(self, batch, _):
        return torch.stack([self(batch[0]).sigmoid(), batch[1]])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)


def main():
    cfg = FraudConfig()
    L.seed_everything(cfg.seed, verbose=False)
    data = FraudData(cfg)
    data.setup()
    model = FraudModel(data.n_features, cfg.hidden, cfg.lr, data.pos_weight)
    with tempfile.TemporaryDirectory() as out:
        watch = {"monitor": "val_auc"}
        checkpoint = ModelCheckpoint(dirpath=out, save_top_k=1, **watch)
        trainer = L.Trainer(max_epochs=cfg.max_epochs, accelerator="cpu", devices=1, logger=False,
                            enable_progress_bar=False, enable_model_summary=False,
                            callbacks=[checkpoint, EarlyStopping(patience=cfg.patience, **watch)])
        trainer.fit(model, datamodule=data)
        pred = trainer.predict(model, data.test_dataloader(), ckpt_path=checkpoint.best_model_path)
    p, y = torch.cat(pred, dim=1).numpy()
    print(json.dumps({"epochs_run": trainer.current_epoch, "fraud_rate": round(float(y.mean()), 4),
                      "test_auc": round(roc_auc_score(y, p), 4),
                      "test_ap": round(average_precision_score(y, p), 4)}))


if __name__ == "__main__":
    main()
