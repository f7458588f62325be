# frozen backbone + unfreeze later callback, lightning. maybe useful for somebody
import warnings, logging, os, tempfile
warnings.filterwarnings("ignore")
for n in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(n).setLevel(logging.ERROR)
import argparse
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, Sampler
import lightning.pytorch as pl
from lightning.pytorch.callbacks import BaseFinetuning, ModelCheckpoint
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

cli = argparse.ArgumentParser()
cli.add_argument("--pre_epochs", type=int, default=6)
cli.add_argument("--ft_epochs", type=int, default=10)
cli.add_argument("--unfreeze", type=int, default=6)
cli.add_argument("--per_class", type=int, default=12)
cfg = cli.parse_args()
pl.seed_everything(8, verbose=False)


class BalancedBatches(Sampler):
    """k rows of every class per batch, with replacement"""

    def __init__(self, y, k, n_batches):
        self.by = [torch.nonzero(y == c).flatten() for c in y.unique()]
        self.k, self.n = k, n_batches

    def __len__(self):
        return self.n

    def __iter__(self):
        for _ in range(self.n):
            yield torch.cat([ix[torch.randint(len(ix), (self.k,))] for ix in self.by]).tolist()


def backbone():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten())


class Lit(pl.LightningModule):
    def __init__(self, body, classes, lr):
        super().__init__()
        self.body, self.lr = body, lr
        self.head = nn.Linear(128, classes)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, b, i):
        loss = F.cross_entropy(self(b[0]), b[1])
        self.log("loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, b, i):
        self.log("acc", (self(b[0]).argmax(1) == b[1]).float().mean(), batch_size=len(b[1]))

    test_step = validation_step

    def on_validation_epoch_end(self):
        n = sum(p.requires_grad for p in self.parameters())
        print("  ep %2d acc %.4f  (%d trainable tensors)" % (self.current_epoch, self.trainer.callback_metrics["acc"], n))

    def configure_optimizers(self):
        ps = [p for p in self.parameters() if p.requires_grad]
        return torch.optim.SGD(ps, lr=self.lr, momentum=0.9, weight_decay=5e-3)


class LateUnfreeze(BaseFinetuning):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def freeze_before_training(self, m):
        self.freeze(m.body)     # batchnorm keeps adapting to the new inputs

    def finetune_function(self, m, epoch, optimizer):
        if epoch == self.at:
            self.unfreeze_and_add_param_group(m.body, optimizer, initial_denom_lr=10)


def kw(n, **more):
    return dict(max_epochs=n, accelerator="cpu", logger=False, enable_progress_bar=False,
                enable_model_summary=False, num_sanity_val_steps=0, **more)


D = load_digits()
X = torch.tensor(D.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(D.target)
ia, ib = train_test_split(range(len(y)), test_size=0.5, stratify=y, random_state=0)

# 1) pretext: how was the picture rotated
rot = torch.cat([torch.rot90(X[ia], k, (2, 3)) for k in range(4)])
rl = torch.arange(4).repeat_interleave(len(ia))
perm = torch.randperm(len(rl))
rot, rl = rot[perm], rl[perm]
cut = int(0.85 * len(rl))
pre = Lit(backbone(), 4, 0.05)
print("pretext")
pl.Trainer(**kw(cfg.pre_epochs, enable_checkpointing=False)).fit(
    pre, DataLoader(TensorDataset(rot[:cut], rl[:cut]), 64, shuffle=True),
    DataLoader(TensorDataset(rot[cut:], rl[cut:]), 600))

# 2) digits with few labels, inverted pictures
itr, ite = train_test_split(ib, train_size=10 * cfg.per_class, stratify=y[ib], random_state=1)
Xi = 1 - X
tr = TensorDataset(Xi[itr], y[itr])
te = DataLoader(TensorDataset(Xi[ite], y[ite]), 800)
model = Lit(backbone(), 10, 0.03)
print(model.body.load_state_dict(pre.body.state_dict()))
ck = ModelCheckpoint(dirpath=tempfile.mkdtemp(), save_last=True, save_top_k=0)
t = pl.Trainer(**kw(cfg.ft_epochs, callbacks=[LateUnfreeze(cfg.unfreeze), ck]))
print("digits")
t.fit(model, DataLoader(tr, batch_sampler=BalancedBatches(y[itr], 3, 30)), te)
res = t.test(model, te, verbose=False)[0]
print("FINAL acc=%.4f, checkpoint %s" % (res["acc"], os.path.basename(ck.last_model_path)))
