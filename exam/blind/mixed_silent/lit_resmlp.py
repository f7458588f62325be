# deep residual MLP on a two-spirals problem with lightning
import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

L.seed_everything(8, workers=True)


def spirals(n, turns=1.6, noise=0.05):
    r = torch.rand(n).sqrt()
    y = torch.randint(0, 2, (n,))
    a = r * turns * 2 * torch.pi + y * torch.pi
    x = torch.stack([r * torch.cos(a), r * torch.sin(a)], 1)
    return x + noise * torch.randn_like(x) * 0.5, y


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))

    def forward(self, x):
        return x + self.f(x)


class ResMLP(L.LightningModule):
    def __init__(self, width=48, depth=3, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Linear(2, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.head = nn.Linear(width, 2)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h)

    def step(self, batch, stage):
        x, y = batch
        out = self(x)
        loss = self.loss(out, y)
        acc = (out.argmax(-1) == y).float().mean()
        self.log(f"{stage}_loss", loss, prog_bar=True)
        self.log(f"{stage}_acc", acc, prog_bar=True)
        return loss

    def training_step(self, batch, _):
        return self.step(batch, "train")

    def validation_step(self, batch, _):
        self.step(batch, "val")

    def test_step(self, batch, _):
        self.step(batch, "test")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": sched}


x, y = spirals(3000)
train, val, test = random_split(TensorDataset(x, y), [2000, 500, 500])
train_dl = DataLoader(train, batch_size=64, shuffle=True)
val_dl, test_dl = DataLoader(val, batch_size=250), DataLoader(test, batch_size=250)

ckpt = ModelCheckpoint(dirpath="out_resmlp", filename="best", monitor="val_acc", mode="max",
                       enable_version_counter=False)
model = ResMLP()
trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, callbacks=[ckpt],
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, train_dl, val_dl)
print("best val_acc:", float(ckpt.best_model_score))
trainer.test(model, test_dl)
