"""Self-supervised rotation pre-training, then a probe on the frozen trunk with few labels."""
import lightning as L
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

QUIET = dict(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
             enable_model_summary=False, num_sanity_val_steps=0)


def trunk():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU())


class Rotation(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = trunk(), nn.Linear(64, 4)

    def prepare(self, x):
        k = torch.randint(0, 4, (len(x),))
        return torch.stack([torch.rot90(a, int(r), (1, 2)) for a, r in zip(x, k)]), k

    def training_step(self, batch, _):
        x, k = self.prepare(batch[0])
        return nn.functional.cross_entropy(self.head(self.trunk(x)), k)

    def validation_step(self, batch, _):
        x, k = self.prepare(batch[0])
        self.log("rot_acc", (self.head(self.trunk(x)).argmax(1) == k).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


class Probe(L.LightningModule):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.body.requires_grad_(False)
        self.head = nn.Linear(64, 10)

    def on_train_epoch_start(self):
        self.body.eval()          # keep the running statistics of the trunk

    def forward(self, x):
        with torch.no_grad():
            h = self.body(x)
        return self.head(h)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        out = self(x)
        self.log_dict({"val_loss": nn.functional.cross_entropy(out, y),
                       "val_acc": (out.argmax(1) == y).float().mean()})

    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), lr=2e-2, weight_decay=1e-4)


L.seed_everything(3)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y = torch.tensor(y)
tr, te = train_test_split(torch.arange(len(y)).numpy(), test_size=0.3, random_state=3, stratify=y.numpy())
few = tr[:200]
dl = lambda i, bs, sh=False: DataLoader(TensorDataset(X[i], y[i]), bs, shuffle=sh)

pre = Rotation()
t = L.Trainer(max_epochs=6, **QUIET)
t.fit(pre, dl(tr, 64, True), dl(te, 270))
print("rotation accuracy on test images:", float(t.callback_metrics["rot_acc"]))

for name, body in (("random trunk", trunk()), ("pre-trained trunk", pre.trunk)):
    probe = Probe(body)
    t = L.Trainer(max_epochs=20, **QUIET)
    t.fit(probe, dl(few, 50, True), dl(te, 270))
    print(name, {k: round(float(v), 4) for k, v in t.callback_metrics.items()})
