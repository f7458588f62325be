import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class DiabetesDataModule(L.LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        X, y = load_diabetes(return_X_y=True)
        perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0)).numpy()
        tr, va, te = perm[:300], perm[300:370], perm[370:]
        xs, ys = StandardScaler().fit(X[tr]), StandardScaler().fit(y[tr, None])
        pack = lambda i: TensorDataset(torch.tensor(xs.transform(X[i])).float(), torch.tensor(ys.transform(y[i, None])).float())
        self.train_ds, self.val_ds, self.test_ds = pack(tr), pack(va), pack(te)

    def train_dataloader(self):
        return DataLoader(self.train_ds, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_ds, batch_size=100)

    def test_dataloader(self):
        return DataLoader(self.test_ds, batch_size=100)


class Regressor(L.LightningModule):
    def __init__(self, lr: float = 3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y), prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        self.log_dict({"test_mse": F.mse_loss(pred, y), "test_r2": 1 - ((pred - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.3)}


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    dm, model = DiabetesDataModule(), Regressor()
    trainer = L.Trainer(max_epochs=25, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=0)
    before = trainer.test(model, dm, verbose=False)[0]
    trainer.fit(model, datamodule=dm)
    after = trainer.test(model, dm, verbose=False)[0]
    print(f"test mse {before['test_mse']:.3f} -> {after['test_mse']:.3f}, r2 {before['test_r2']:.3f} -> {after['test_r2']:.3f}")
