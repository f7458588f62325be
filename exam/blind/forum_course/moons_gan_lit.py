"""Lecture 12: adversarial training with manual optimisation in Lightning.

The generator has to reproduce the two-moons density.  Quality is measured with the
energy distance between generated and real points (the same real points each time).
"""
import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def net(n_in, n_out, width=64, norm=False):
    wrap = nn.utils.parametrizations.spectral_norm if norm else (lambda m: m)
    return nn.Sequential(
        wrap(nn.Linear(n_in, width)), nn.LeakyReLU(0.2),
        wrap(nn.Linear(width, width)), nn.LeakyReLU(0.2),
        nn.Linear(width, n_out),
    )


def energy_distance(a, b):
    cross = torch.cdist(a, b).mean()
    return (2 * cross - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


class MoonsData(L.LightningDataModule):
    def __init__(self, n=2000, batch_size=100):
        super().__init__()
        self.n, self.batch_size = n, batch_size

    def setup(self, stage=None):
        points, _ = make_moons(self.n, noise=0.06, random_state=0)
        points = torch.tensor(points, dtype=torch.float32)
        self.points = (points - points.mean(0)) / points.std(0)

    def train_dataloader(self):
        return DataLoader(TensorDataset(self.points), self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        # density fit is judged on the points themselves
        return DataLoader(TensorDataset(self.points[:1000]), batch_size=1000)


class MoonsGAN(L.LightningModule):
    def __init__(self, latent=4, lr=2e-3, n_critic=2, avg=0.98):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = net(latent, 2)
        self.critic = net(2, 1, norm=True)
        self.average = torch.optim.swa_utils.AveragedModel(
            self.generator, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(avg))
        self.history = []

    def noise(self, n):
        return torch.randn(n, self.hparams.latent, device=self.device)

    def training_step(self, batch, batch_idx):
        real, = batch
        opt_g, opt_c = self.optimizers()

        self.toggle_optimizer(opt_c)
        fake = self.generator(self.noise(len(real))).detach()
        loss_c = torch.relu(1 - self.critic(real)).mean() + torch.relu(1 + self.critic(fake)).mean()
        opt_c.zero_grad()
        self.manual_backward(loss_c)
        opt_c.step()
        self.untoggle_optimizer(opt_c)

        if (batch_idx + 1) % self.hparams.n_critic == 0:
            self.toggle_optimizer(opt_g)
            loss_g = -self.critic(self.generator(self.noise(len(real)))).mean()
            opt_g.zero_grad()
            self.manual_backward(loss_g)
            opt_g.step()
            self.untoggle_optimizer(opt_g)
            self.average.update_parameters(self.generator)
            self.log("loss_g", loss_g)
        self.log("loss_c", loss_c)

    def on_train_epoch_end(self):
        for scheduler in self.lr_schedulers():
            scheduler.step()

    def validation_step(self, batch, batch_idx):
        real, = batch
        with torch.random.fork_rng():
            torch.manual_seed(0)
            z = self.noise(1000)
        raw = energy_distance(self.generator(z), real)
        smooth = energy_distance(self.average(z), real)
        self.history.append(smooth)
        self.log_dict({"dist": raw, "dist_avg": smooth})
        if self.current_epoch % 10 == 0:
            print(f"epoch {self.current_epoch:3d} energy distance {raw:.4f} averaged {smooth:.4f}")

    def configure_optimizers(self):
        lr = self.hparams.lr
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr / 2, betas=(0.0, 0.9))
        opt_c = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.0, 0.9))
        return [opt_g, opt_c], [torch.optim.lr_scheduler.ExponentialLR(o, 0.98) for o in (opt_g, opt_c)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=45)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    L.seed_everything(args.seed, verbose=False)
    model, data = MoonsGAN(), MoonsData()
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=1)
    trainer.fit(model, data)
    print(f"FINAL energy_distance={model.history[-1]:.4f} untrained={model.history[0]:.4f}")


if __name__ == "__main__":
    main()
