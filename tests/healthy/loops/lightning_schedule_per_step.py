"""Lightning with OneCycle per step, accumulation, clipping and early stopping on breast cancer."""

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loaders():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X_train)
    train, val = (
        TensorDataset(torch.tensor(scaler.transform(a)).float(), torch.tensor(b).float())
        for a, b in ((X_train, y_train), (X_val, y_val))
    )
    return DataLoader(train, batch_size=16, shuffle=True), DataLoader(val, batch_size=64)


class Diagnosis(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
        self.loss = nn.BCEWithLogitsLoss()

    def _shared_step(self, batch):
        x, y = batch
        logits = self.net(x).squeeze(1)
        return self.loss(logits, y), ((logits > 0) == y.bool()).float().mean()

    def training_step(self, batch, batch_idx):
        loss, accuracy = self._shared_step(batch)
        self.log_dict({"train/loss": loss, "train/accuracy": accuracy})
        return loss

    def validation_step(self, batch, batch_idx):
        loss, accuracy = self._shared_step(batch)
        self.log_dict({"val_loss": loss, "val_accuracy": accuracy})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        total = int(self.trainer.estimated_stepping_batches)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=total)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


L.seed_everything(1)
train_loader, val_loader = loaders()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
stopping = EarlyStopping("val_loss", patience=4)
trainer = L.Trainer(max_epochs=10, accumulate_grad_batches=2, gradient_clip_val=1.0, callbacks=[stopping], accelerator="cpu", **quiet)
trainer.fit(Diagnosis(), train_loader, val_loader)
print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
