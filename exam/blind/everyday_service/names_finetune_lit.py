"""Language of a made-up surname from its letters; embedding + conv pre-trained on an easier task, unfrozen later."""
import random
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import BaseFinetuning, EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = {
    "nordic": ("bj ly stro nor hel vik and gus", "sen son berg lund strom dal"),
    "italian": ("ro bel mar con fer gal lom ric", "etti ini one ucci ardi ello"),
    "slavic": ("nov kow pet iva dra zel vol mil", "ski ov ic enko ak czyk"),
    "japanese": ("ta ka mi sa na ya ko fu", "moto mura shima naka yama hashi"),
    "french": ("du le beau mont cha bou gir lav", "eau ier oux elle in ois"),
}
LANGS = list(SYLLABLES)


def surname(rng, lang):
    start, end = (part.split() for part in SYLLABLES[lang])
    name = "".join(rng.choice(start) for _ in range(rng.choice([1, 2]))) + rng.choice(end)
    if rng.random() < 0.15:
        i = rng.randrange(len(name))
        name = name[:i] + rng.choice(ALPHABET) + name[i + 1:]
    return name


def make_loader(rows, batch_size, shuffle):
    def collate(batch):
        names, labels = zip(*batch)
        x = torch.zeros(len(names), 18, dtype=torch.long)
        for i, n in enumerate(names):
            x[i, :len(n)] = torch.tensor([ALPHABET.index(c) + 1 for c in n])
        return x, torch.tensor(labels)
    return DataLoader(rows, batch_size, shuffle=shuffle, collate_fn=collate)


class CharNet(L.LightningModule):
    def __init__(self, n_out, max_lr, steps=None):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential()
        self.backbone.add_module("emb", nn.Embedding(27, 16, padding_idx=0))
        self.backbone.add_module("conv", nn.Conv1d(16, 48, 3, padding=1))
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(48, n_out))

    def forward(self, x):
        h = self.backbone.emb(x).transpose(1, 2)
        return self.head(F.relu(self.backbone.conv(h)).amax(-1))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), batch_size=len(y))

    def test_step(self, batch, _):
        x, y = batch
        self.log("test_acc", (self(x).argmax(1) == y).float().mean(), batch_size=len(y))

    def configure_optimizers(self):
        opt = torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=self.hparams.max_lr)
        if self.hparams.steps is None:
            return opt
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.max_lr, total_steps=self.hparams.steps)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


class Unfreeze(BaseFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module, epoch, optimizer):
        if epoch == 3:
            self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, lr=2e-3)


def trainer(**kw):
    return L.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                     num_sanity_val_steps=0, **kw)


if __name__ == "__main__":
    L.seed_everything(12, verbose=False)
    rng = random.Random(12)
    # stage 1: nordic or not, plenty of labels
    rows = [(surname(rng, l), int(l == "nordic")) for l in rng.choices(LANGS, [4, 1, 1, 1, 1], k=1500)]
    first = CharNet(2, 1e-2, steps=4 * 24)
    t = trainer(max_epochs=4, enable_checkpointing=False)
    t.fit(first, make_loader(rows[:1200], 50, True), make_loader(rows[1200:], 100, False))
    print("stage 1 val acc %.3f" % t.callback_metrics["val_acc"])

    # stage 2: which of the five, backbone frozen for three epochs
    rows = [(surname(rng, l), LANGS.index(l)) for l in rng.choices(LANGS, k=1800)]
    train, val, test = rows[:1000], rows[1000:1300], rows[1300:]
    model = CharNet(len(LANGS), 1e-2)
    model.backbone.load_state_dict(first.backbone.state_dict())
    best = ModelCheckpoint(tempfile.mkdtemp(), monitor="val_acc", mode="max", save_weights_only=True)
    t = trainer(max_epochs=12, gradient_clip_val=0.5,
                callbacks=[Unfreeze(), best, EarlyStopping("val_acc", mode="max", patience=5)])
    t.fit(model, make_loader(train, 50, True), make_loader(val, 100, False))
    print("best val acc %.3f" % best.best_model_score)
    model = CharNet.load_from_checkpoint(best.best_model_path, weights_only=True)
    print("test accuracy %.4f" % t.test(model, make_loader(test, 100, False), verbose=False)[0]["test_acc"])
