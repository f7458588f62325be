"""Lightning: breast-cancer screening model; train, keep the best checkpoint, reload it for scoring."""
import logging, os, shutil, warnings
import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED = 0
DIR = "/tmp/lit_reload"


class Screening(L.LightningModule):
    def __init__(self, n_in, hidden=32, lr=3e-3, centre=None, scale=None):
        super().__init__()
        self.save_hyperparameters(ignore=["centre", "scale"])
        self.centre = torch.zeros(n_in) if centre is None else torch.as_tensor(centre, dtype=torch.float32)
        self.scale = torch.ones(n_in) if scale is None else torch.as_tensor(scale, dtype=torch.float32)
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Dropout(.2), nn.Linear(hidden, 1))
        self.lossf = nn.BCEWithLogitsLoss()

    def forward(self, x):
        return self.net((x - self.centre) / self.scale).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        return self.lossf(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        z = self(x)
        self.log_dict({"val_loss": self.lossf(z, y), "val_acc": ((z > 0) == (y > .5)).float().mean()})

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)


def loader(x, y, shuffle=False):
    return DataLoader(TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)),
                      batch_size=32 if shuffle else 256, shuffle=shuffle)


def main():
    L.seed_everything(SEED, verbose=False)
    shutil.rmtree(DIR, ignore_errors=True)
    x, y = load_breast_cancer(return_X_y=True)
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=.3, stratify=y, random_state=SEED)
    xtr, xva, ytr, yva = train_test_split(xtr, ytr, test_size=.25, stratify=ytr, random_state=SEED)
    model = Screening(x.shape[1], centre=xtr.mean(0), scale=xtr.std(0))
    best = ModelCheckpoint(DIR, monitor="val_loss", mode="min")
    trainer = L.Trainer(max_epochs=40, accelerator="cpu", logger=False, enable_progress_bar=False,
                        enable_model_summary=False, callbacks=[best, EarlyStopping("val_loss", patience=6)])
    trainer.fit(model, loader(xtr, ytr, True), loader(xva, yva))
    print(f"stopped after {trainer.current_epoch} epochs, best validation loss {best.best_model_score:.4f}")
    print(f"last validation accuracy {trainer.callback_metrics['val_acc']:.3f}")

    scorer = Screening.load_from_checkpoint(best.best_model_path, weights_only=False).eval()
    with torch.no_grad():
        logit = scorer(torch.tensor(xte, dtype=torch.float32)).numpy()
    print(f"loaded {os.path.basename(best.best_model_path)}")
    print(f"test accuracy {accuracy_score(yte, logit > 0):.3f} AUC {roc_auc_score(yte, logit):.3f}")


if __name__ == "__main__":
    main()
