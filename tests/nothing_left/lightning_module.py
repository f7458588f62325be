"""A LightningModule that writes in its step, and three loggers."""

import os, logging, csv
import torch, lightning as L
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from lightning.pytorch.loggers import WandbLogger, TensorBoardLogger, CSVLogger
logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger("mine"); log.info("begin")
out = open("out.txt", "w"); out.write("head\n"); out.flush()
class Module(L.LightningModule):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    def training_step(self, batch, i):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss); out.write("x"); log.info("loss %f", loss)
        self.logger.experiment.add_scalar("mine", loss, i)
        with open("losses.txt", "a") as f: f.write("x")
        return loss
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 1e-2)
torch.manual_seed(0)
x = torch.randn(256, 8); y = (x.sum(1) > 0).long()
stop_at_once = os.environ.get("STOP") and exit(0)
logger = TensorBoardLogger("tb"); wl = WandbLogger(project="p")
logger.experiment.add_scalar("first", 1.0, 0); wl.experiment
trainer = L.Trainer(max_epochs=2, logger=[logger, wl, CSVLogger("csv")], accelerator="cpu", enable_progress_bar=False)
from digits import stop_here
stop_here()
trainer.fit(Module(), DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True))
