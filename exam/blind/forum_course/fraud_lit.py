# fraud detection w/ pytorch lightning
# accuracy is 95% from the first epoch but recall is zero?? already use pos_weight like in the docs
import warnings, logging
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
from argparse import ArgumentParser

import lightning.pytorch as pl
import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset, DataLoader
from sklearn.datasets import make_classification
from sklearn.metrics import precision_recall_fscore_support, average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import RobustScaler

pl.seed_everything(2024, verbose=False)

parser = ArgumentParser()
parser.add_argument("--max_epochs", type=int, default=12)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--batch_size", type=int, default=128)
parser.add_argument("--dropout", type=float, default=0.1)
hparams = parser.parse_args()


class FraudDM(pl.LightningDataModule):
    def __init__(self, bs):
        super().__init__()
        self.bs = bs

    def setup(self, stage=None):
        # our real data is private, this behaves the same
        X, y = make_classification(n_samples=6000, n_features=24, n_informative=8, n_redundant=4,
                                   n_clusters_per_class=2, weights=[0.95], flip_y=0.01,
                                   class_sep=1.0, random_state=8)
        X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        sc = RobustScaler().fit(X_tr)
        f = lambda z: torch.tensor(sc.transform(z), dtype=torch.float32)
        self.tr = TensorDataset(f(X_tr), torch.tensor(y_tr, dtype=torch.float32))
        self.va = TensorDataset(f(X_va), torch.tensor(y_va, dtype=torch.float32))
        n_fraud = float(y_tr.sum())
        n_ok = float(len(y_tr) - n_fraud)
        self.pos_weight = torch.tensor(n_fraud / n_ok)
        print("fraud rate train %.4f val %.4f" % (y_tr.mean(), y_va.mean()))

    def train_dataloader(self):
        return DataLoader(self.tr, batch_size=self.bs, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.va, batch_size=600)


class FraudNet(pl.LightningModule):
    def __init__(self, n_features, pos_weight, lr, dropout):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Linear(n_features, 64), nn.LeakyReLU(0.1), nn.Dropout(dropout),
            nn.Linear(64, 64), nn.LeakyReLU(0.1), nn.Dropout(dropout),
            nn.Linear(64, 1))
        self.loss_fn = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.val_out = []

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = self.loss_fn(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logit = self(x)
        self.log("val_loss", self.loss_fn(logit, y), batch_size=len(y))
        self.val_out.append((torch.sigmoid(logit), y))

    def on_validation_epoch_end(self):
        p = torch.cat([o[0] for o in self.val_out]).cpu().numpy()
        y = torch.cat([o[1] for o in self.val_out]).cpu().numpy()
        self.val_out.clear()
        pr, rc, f1, _ = precision_recall_fscore_support(y, p > 0.5, average="binary", zero_division=0)
        ap = average_precision_score(y, p)
        self.log_dict({"val_f1": f1, "val_recall": rc, "val_ap": ap})
        print("epoch %2d acc %.4f precision %.3f recall %.3f f1 %.3f ap %.3f" % (
            self.current_epoch, ((p > 0.5) == y).mean(), pr, rc, f1, ap))

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.lr)
        sch = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "monitor": "val_loss"}}


dm = FraudDM(hparams.batch_size)
dm.setup()
net = FraudNet(24, dm.pos_weight, hparams.lr, hparams.dropout)
trainer = pl.Trainer(max_epochs=hparams.max_epochs, accelerator="cpu", logger=False,
                     enable_checkpointing=False, enable_progress_bar=False,
                     enable_model_summary=False, num_sanity_val_steps=0)
trainer.fit(net, datamodule=dm)
m = trainer.callback_metrics
print("FINAL f1=%.4f recall=%.4f ap=%.4f" % (m["val_f1"], m["val_recall"], m["val_ap"]))
