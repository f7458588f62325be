import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def houses(n, seed=0):
    g = np.random.default_rng(seed)
    area = g.gamma(6, 18, n)
    rooms = np.clip(np.round(area / 28 + g.normal(0, 0.7, n)), 1, None)
    age = g.uniform(0, 90, n)
    dist = g.exponential(6, n)
    garden = g.integers(0, 2, n)
    price = (40 + 2.1 * area + 9 * rooms - 0.8 * age + 0.007 * (age - 40) ** 2) * np.exp(-dist / 15) + 30 * garden
    price = price + g.normal(0, 12, n)
    return np.c_[area, rooms, age, dist, garden].astype("float32"), price.astype("float32")


class PriceModel(L.LightningModule):
    def __init__(self, n_features, hidden, y_mean, y_std, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.y_mean, self.y_std = y_mean, y_std
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), (y - self.y_mean) / self.y_std)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x) * self.y_std + self.y_mean
        self.log("val_mae", (pred - y).abs().mean(), prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x) * self.y_std + self.y_mean
        self.log("test_mae", (pred - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


L.seed_everything(2)
X, y = houses(2500)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, random_state=0)
X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.2, random_state=0)
scaler = StandardScaler().fit(X_tr)


def dl(a, b, shuffle=False):
    a = torch.tensor(scaler.transform(a), dtype=torch.float32)
    return DataLoader(TensorDataset(a, torch.tensor(b)), batch_size=64, shuffle=shuffle)


checkpoint = ModelCheckpoint(dirpath="out_house", monitor="val_mae", mode="min", save_top_k=1,
                             enable_version_counter=False)
trainer = L.Trainer(
    max_epochs=25, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
    callbacks=[checkpoint, EarlyStopping("val_mae", patience=6, mode="min")])
model = PriceModel(5, 48, float(y_tr.mean()), float(y_tr.std()))
trainer.fit(model, dl(X_tr, y_tr, True), dl(X_va, y_va))
print("val_mae", float(trainer.callback_metrics["val_mae"]), "stopped at", trainer.current_epoch)
print("mean price baseline MAE", float(np.abs(y_te - y_tr.mean()).mean()))

best = PriceModel.load_from_checkpoint(checkpoint.best_model_path)
trainer.test(best, dl(X_te, y_te))
