"""Lightning with manual optimization: a GAN on a ring of points, an optimizer for each network."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, n_out))


class RingGan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.discriminator = mlp(8, 2), mlp(2, 1)
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch, batch_idx):
        (real,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = self(torch.randn(len(real), 8))

        optimizer_d.zero_grad()
        d_loss = self.criterion(self.discriminator(real), ones) + self.criterion(self.discriminator(fake.detach()), zeros)
        self.manual_backward(d_loss)
        optimizer_d.step()

        optimizer_g.zero_grad()
        g_loss = self.criterion(self.discriminator(fake), ones)
        self.manual_backward(g_loss)
        optimizer_g.step()
        self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

    def configure_optimizers(self):
        return [
            torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(self.discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999)),
        ]


L.seed_everything(0)
angle = 6.2832 * torch.rand(6400)
points = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(6400, 2)
model = RingGan()
trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(model, DataLoader(TensorDataset(points), batch_size=128, shuffle=True))
with torch.no_grad():
    radius = model(torch.randn(500, 8)).norm(dim=1)
print(f"radius {radius.mean():.2f} +- {radius.std():.2f}")
