"""Denoising autoencoder + classifier on its code, each with an own optimizer (manual optimization)."""
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")


class Both(L.LightningModule):
    def __init__(self, code=24, accumulate=2, lr_ae=3e-3, lr_clf=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.GELU(), nn.Linear(96, 64), nn.Sigmoid())
        self.classifier = nn.Sequential(nn.BatchNorm1d(code), nn.Linear(code, 64), nn.GELU(), nn.Linear(64, 10))
        self.hits = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        opt_ae, opt_clf = self.optimizers()
        acc = self.hparams.accumulate

        code = self.encoder(x + 0.15 * torch.randn_like(x))
        recon = F.mse_loss(self.decoder(code), x, reduction="none").sum(1).mean()
        self.manual_backward(recon / acc)
        # the classifier must not pull on the code
        ce = F.cross_entropy(self.classifier(code.detach()), y)
        self.manual_backward(ce / acc)

        last = self.trainer.is_last_batch
        if (batch_idx + 1) % acc == 0 or last:
            self.clip_gradients(opt_ae, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
            for opt in (opt_ae, opt_clf):
                opt.step()
                opt.zero_grad()
        if last:
            for sched in self.lr_schedulers():
                sched.step()
        self.log_dict({"recon": recon, "ce": ce}, on_step=False, on_epoch=True)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        code = self.encoder(x)
        self.log("val_recon", F.mse_loss(self.decoder(code), x))
        self.hits.append(self.classifier(code).argmax(1) == y)

    def on_validation_epoch_end(self):
        acc = torch.cat(self.hits).float().mean()
        self.hits.clear()
        self.log("val_acc", acc)
        if self.current_epoch % 4 == 3:
            print(f"epoch {self.current_epoch} val_acc {acc:.3f} val_recon {self.trainer.callback_metrics['val_recon']:.4f}")

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], lr=self.hparams.lr_ae)
        clf = torch.optim.AdamW(self.classifier.parameters(), lr=self.hparams.lr_clf)
        decay = lambda opt: torch.optim.lr_scheduler.StepLR(opt, step_size=8, gamma=0.5)
        return [ae, clf], [decay(ae), decay(clf)]


def main():
    L.seed_everything(2024, verbose=False)
    digits = load_digits()
    X = torch.from_numpy((digits.data / 16.0).astype(np.float32))
    data = TensorDataset(X, torch.from_numpy(digits.target))
    train, valid, test = random_split(data, [1200, 250, len(X) - 1450], generator=torch.Generator().manual_seed(0))
    model = Both()
    trainer = L.Trainer(max_epochs=24, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                        callbacks=[EarlyStopping("val_acc", mode="max", patience=8)])
    trainer.fit(model, DataLoader(train, 32, shuffle=True), DataLoader(valid, 250))

    model.eval()
    with torch.no_grad():
        x, y = next(iter(DataLoader(test, len(test))))
        code = model.encoder(x)
        baseline = ((x - X[train.indices].mean(0)) ** 2).mean()
        print("test recon mse %.4f (mean image %.4f)" % (F.mse_loss(model.decoder(code), x), baseline))
        print("test accuracy %.4f" % (model.classifier(code).argmax(1) == y).float().mean())


if __name__ == "__main__":
    main()
