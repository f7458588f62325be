"""Lightning: role of a name from its first letters and the characters before it, unbalanced classes weighted in the loss."""
import io, logging, os, sysconfig, tokenize, warnings
from collections import Counter
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED = 0
STD = sysconfig.get_path("stdlib")
LABELS = ["call", "definition", "plain"]


def mentions(path):
    """Names in a file with the role they play there and the three characters either side."""
    src = open(os.path.join(STD, path), encoding="utf-8").read()
    lines = src.splitlines()
    toks = [t for t in tokenize.generate_tokens(io.StringIO(src).readline) if t.string.strip()]
    for prev, t, nxt in zip(toks, toks[1:], toks[2:]):
        if t.type != tokenize.NAME or len(t.string) < 3:
            continue
        if prev.string in ("def", "class"):
            y = 1
        elif nxt.string == "(":
            y = 0
        else:
            y = 2
        row, col = t.start
        yield t.string[:10].ljust(10) + lines[row - 1][:col][-4:].rjust(4), y


def table(files):
    xs, ys = [], []
    for f in files:
        for text, y in mentions(f):
            xs.append([min(ord(c), 127) for c in text])
            ys.append(y)
    return torch.tensor(xs), torch.tensor(ys)


class Roles(L.LightningModule):
    def __init__(self, weights):
        super().__init__()
        self.emb = nn.Embedding(128, 16)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(14 * 16, 64), nn.ReLU(), nn.Linear(64, len(LABELS)))
        self.loss = nn.CrossEntropyLoss(weight=weights)
        self.hits = []

    def forward(self, x):
        return self.net(self.emb(x))

    def training_step(self, batch, _):
        return self.loss(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.hits.append((self(batch[0]).argmax(1), batch[1]))

    def on_validation_epoch_end(self):
        p, y = (torch.cat(v) for v in zip(*self.hits))
        self.hits.clear()
        self.recall = [(p[y == k] == k).float().mean().item() for k in range(len(LABELS))]
        print(f"epoch {self.current_epoch} acc {(p == y).float().mean():.3f} recall "
              + " ".join(f"{n}={r:.2f}" for n, r in zip(LABELS, self.recall)))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


L.seed_everything(SEED, verbose=False)
xtr, ytr = table(["shlex.py", "argparse.py", "csv.py", "heapq.py"])
xva, yva = table(["cmd.py", "queue.py", "sched.py", "configparser.py"])
count = Counter(ytr.tolist())
print({LABELS[k]: n for k, n in sorted(count.items())})
weights = torch.tensor([len(ytr) / (len(LABELS) * n) for n in count.values()])
model = Roles(weights)
trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
trainer.fit(model, DataLoader(TensorDataset(xtr, ytr), 64, shuffle=True), DataLoader(TensorDataset(xva, yva), 512))
print(f"balanced accuracy {sum(model.recall) / len(LABELS):.3f}")
