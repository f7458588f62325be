"""Lightning, manual optimisation: predict the class while an adversary keeps a nuisance variable out of the features."""
import logging, warnings
import lightning as L
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED = 0
F = nn.functional


def draw(n, rng, link):
    """y: label, s: nuisance that agrees with y with probability `link`; both leave traces in x."""
    y = rng.integers(0, 2, n)
    s = np.where(rng.random(n) < link, y, 1 - y)
    x = rng.normal(size=(n, 12))
    x[:, :4] += (.7 * (2 * y - 1))[:, None]
    x[:, 4:8] += (1.2 * (2 * s - 1))[:, None]
    return [torch.tensor(x, dtype=torch.float32), torch.tensor(y), torch.tensor(s)]


class Fair(L.LightningModule):
    def __init__(self, strength, d=8):
        super().__init__()
        self.automatic_optimization = False
        self.save_hyperparameters()
        self.enc = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, d))
        self.cls = nn.Linear(d, 2)
        self.adv = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.cls(self.enc(x))

    def configure_optimizers(self):
        return (torch.optim.Adam([*self.enc.parameters(), *self.cls.parameters()], 2e-3),
                torch.optim.Adam(self.adv.parameters(), 4e-3))

    @staticmethod
    def balance(y, s):
        """Weights that make y and s independent within the batch, so hiding s does not forbid y."""
        w = torch.ones(len(y))
        for a in (0, 1):
            for b in (0, 1):
                m = (y == a) & (s == b)
                w[m] = len(y) / (4 * m.sum().clamp(min=1))
        return w

    def adversary_loss(self, h, y, s):
        return (self.balance(y, s) * F.cross_entropy(self.adv(h), s, reduction="none")).mean()

    def training_step(self, batch, _):
        x, y, s = batch
        main, adv = self.optimizers()
        for _ in range(2):
            loss_a = self.adversary_loss(self.enc(x).detach(), y, s)
            adv.zero_grad()
            self.manual_backward(loss_a)
            adv.step()
        h = self.enc(x)
        loss = F.cross_entropy(self.cls(h), y) - self.hparams.strength * self.adversary_loss(h, y, s)
        main.zero_grad()
        self.manual_backward(loss)
        main.step()


def leak(model, data):
    """How well a fresh linear probe reads s from the features, on data where s says nothing about y."""
    with torch.no_grad():
        h = model.enc(data[0]).numpy()
    half = len(h) // 2
    return LogisticRegression(max_iter=500).fit(h[:half], data[2][:half]).score(h[half:], data[2][half:])


rng = np.random.default_rng(SEED)
train, test = draw(3000, rng, .85), draw(2000, rng, .5)
for strength in (0.0, 1.0):
    L.seed_everything(SEED, verbose=False)
    model = Fair(strength)
    tr = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                   enable_progress_bar=False, enable_model_summary=False)
    tr.fit(model, DataLoader(TensorDataset(*train), 128, shuffle=True))
    model.eval()
    with torch.no_grad():
        acc = (model(test[0]).argmax(1) == test[1]).float().mean()
    print(f"adversary strength {strength}: test accuracy with the link broken {acc:.3f}, linear probe for the nuisance {leak(model, test):.3f}")
