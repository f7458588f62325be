import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)


def moons(n):
    t = torch.rand(n) * torch.pi
    k = torch.randint(0, 2, (n,))
    x = torch.stack([torch.where(k == 0, t.cos(), 1 - t.cos()), torch.where(k == 0, t.sin(), 0.5 - t.sin())], 1)
    return x + 0.05 * torch.randn(n, 2)


class GAN(L.LightningModule):
    def __init__(self, z=6, lr=5e-4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.gen = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.disc = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
                                  nn.Linear(64, 1))

    def sample(self, n):
        return self.gen(torch.randn(n, self.hparams.z, device=self.device))

    def training_step(self, batch, _):
        (real,) = batch
        og, od = self.optimizers()

        self.toggle_optimizer(od)
        fake = self.sample(len(real)).detach()
        on_real = self.disc(real)
        d_loss = F.binary_cross_entropy_with_logits(on_real, torch.full_like(on_real, 0.9)) + F.softplus(self.disc(fake)).mean()
        od.zero_grad()
        self.manual_backward(d_loss)
        od.step()
        self.untoggle_optimizer(od)

        self.toggle_optimizer(og)
        g_loss = F.softplus(-self.disc(self.sample(len(real)))).mean()
        og.zero_grad()
        self.manual_backward(g_loss)
        og.step()
        self.untoggle_optimizer(og)
        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, on_epoch=True, on_step=False)

    def validation_step(self, batch, _):
        (real,) = batch
        fake = self.sample(len(real))
        d = lambda a, b: torch.cdist(a, b).mean()
        self.log("val_energy", 2 * d(real, fake) - d(real, real) - d(fake, fake))

    def on_validation_epoch_end(self):
        e = self.trainer.callback_metrics.get("val_energy")
        if e is not None and self.current_epoch % 10 == 0:
            print(f"epoch {self.current_epoch}: val energy {float(e):.4f}")

    def configure_optimizers(self):
        kw = dict(lr=self.hparams.lr, betas=(0.5, 0.9))
        return torch.optim.Adam(self.gen.parameters(), **kw), torch.optim.Adam(self.disc.parameters(), **kw)


train = DataLoader(TensorDataset(moons(4000)), batch_size=128, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(moons(1000)), batch_size=1000)
gan = GAN()
trainer = L.Trainer(max_epochs=45, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
before = trainer.validate(gan, val, verbose=False)[0]["val_energy"]
trainer.fit(gan, train, val)
after = trainer.validate(gan, val, verbose=False)[0]["val_energy"]
print(f"energy distance to held-out points: before {before:.4f}  after {after:.4f}")
