"""Train 6 epochs, stop, build everything anew and go on to 12 from the checkpoint."""
import lightning as L
import torch
import torchmetrics
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(L.LightningDataModule):
    def prepare_data(self):
        load_digits()

    def setup(self, stage):
        X, y = load_digits(return_X_y=True)
        X = torch.tensor(X / 16.0, dtype=torch.float32)
        y = torch.tensor(y)
        a, b = train_test_split(torch.arange(len(y)).numpy(), test_size=0.4, random_state=0, stratify=y.numpy())
        b, c = b[:360], b[360:]
        self.parts = [TensorDataset(X[i], y[i]) for i in (a, b, c)]

    def train_dataloader(self):
        return DataLoader(self.parts[0], 64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.parts[1], 180)

    def test_dataloader(self):
        return DataLoader(self.parts[2], 180)


class Net(L.LightningModule):
    def __init__(self, hidden=64, p=0.6, lr=4e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(p),
                                 nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, 10))
        kw = dict(task="multiclass", num_classes=10)
        self.accs = nn.ModuleDict({s + "_acc": torchmetrics.Accuracy(**kw) for s in ("train", "val", "test")})

    def forward(self, x):
        return self.net(x)

    def shared(self, batch, stage):
        x, y = batch
        out = self(x)
        loss = nn.functional.cross_entropy(out, y)
        acc = self.accs[stage + "_acc"]
        acc(out, y)
        self.log(stage + "_loss", loss, on_step=False, on_epoch=True)
        self.log(stage + "_acc", acc, on_step=False, on_epoch=True)
        return loss

    def training_step(self, b, i):
        return self.shared(b, "train")

    def validation_step(self, b, i):
        self.shared(b, "val")

    def test_step(self, b, i):
        self.shared(b, "test")

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: " + " ".join(f"{k}={float(v):.3f}" for k, v in sorted(m.items())))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.MultiStepLR(opt, [8, 11], gamma=0.3)
        return [opt], [{"scheduler": sched, "interval": "epoch"}]


def make_trainer(epochs):
    ck = ModelCheckpoint(dirpath="out_lit_resume", save_last=True, monitor="val_loss", mode="min",
                         enable_version_counter=False)
    return L.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=[ck, LearningRateMonitor()], deterministic=True,
                     logger=CSVLogger("out_lit_resume/logs"), log_every_n_steps=10,
                     enable_progress_bar=False, enable_model_summary=False)


if __name__ == "__main__":
    L.seed_everything(5)
    first = make_trainer(6)
    first.fit(Net(), datamodule=Digits())
    path = first.checkpoint_callback.last_model_path
    print("resuming from", path)

    second = make_trainer(12)
    second.fit(Net(), datamodule=Digits(), ckpt_path=path, weights_only=False)
    second.test(ckpt_path="best", datamodule=Digits(), weights_only=False)
