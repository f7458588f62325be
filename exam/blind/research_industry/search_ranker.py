"""Listwise search ranking (Lightning): sparse id embeddings and a dense tower with separate optimizers."""
import json
import logging
import warnings
from dataclasses import dataclass

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("ranker")


@dataclass
class RankerConfig:
    sessions: int = 2600
    products: int = 250
    max_slate: int = 10
    id_dim: int = 8
    hidden: int = 32
    lr_sparse: float = 5e-3
    lr_dense: float = 3e-3
    batch: int = 64
    epochs: int = 7
    seed: int = 71


DENSE = ["price_gap", "text_match", "rating"]


def load_impressions(cfg):
    """One row per shown product; the last 20 percent of the sessions in time are the test period."""
    rng = np.random.default_rng(cfg.seed)
    appeal = rng.normal(0, 1.2, cfg.products)
    rating = rng.normal(4, 0.4, cfg.products)
    rows = []
    for session in range(cfg.sessions):
        n = int(rng.integers(4, cfg.max_slate + 1))
        items = rng.choice(cfg.products, n, replace=False)
        price, match = rng.normal(0, 1, n), rng.beta(2, 2, n)
        position = np.arange(n)
        utility = appeal[items] - 0.9 * np.abs(price) + 3.5 * match + 0.8 * (rating[items] - 4) - 0.12 * position
        clicked = (utility + rng.gumbel(size=n)).argmax() == position
        rows.append(pd.DataFrame({"session": session, "product": items, "position": position, "price_gap": price,
                                  "text_match": match, "rating": rating[items], "clicked": clicked}))
    return pd.concat(rows, ignore_index=True)


class Slates(Dataset):
    def __init__(self, frame, centre, scale):
        dense = ((frame[DENSE] - centre) / scale).to_numpy(np.float32)
        self.rows = []
        for _, idx in frame.groupby("session", sort=False).indices.items():
            part = frame.iloc[idx]
            self.rows.append((part["product"].to_numpy(), part["position"].to_numpy(), dense[idx],
                              int(part["clicked"].to_numpy().argmax())))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def pad_slates(batch):
    width = max(len(r[0]) for r in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    pos = torch.zeros(len(batch), width, dtype=torch.long)
    dense = torch.zeros(len(batch), width, len(DENSE))
    valid = torch.zeros(len(batch), width, dtype=torch.bool)
    for r, (i, p, d, _) in enumerate(batch):
        ids[r, :len(i)], pos[r, :len(i)] = torch.as_tensor(i) + 1, torch.as_tensor(p)
        dense[r, :len(i)], valid[r, :len(i)] = torch.as_tensor(d), True
    return ids, pos, dense, valid, torch.tensor([r[3] for r in batch])


class Ranker(L.LightningModule):
    """Position enters as an additive bias during training and is left out when scoring."""

    def __init__(self, cfg):
        super().__init__()
        self.automatic_optimization = False
        self.cfg = cfg
        self.ids = nn.Embedding(cfg.products + 1, cfg.id_dim, sparse=True)
        nn.init.normal_(self.ids.weight, std=0.05)
        self.tower = nn.Sequential(nn.Linear(cfg.id_dim + len(DENSE), cfg.hidden), nn.ReLU(),
                                   nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 1, bias=False))
        self.position = nn.Parameter(torch.zeros(cfg.max_slate))
        self.ranks = []

    def forward(self, ids, dense, valid):
        score = self.tower(torch.cat([self.ids(ids), dense], -1)).squeeze(-1)
        return score.masked_fill(~valid, float("-inf"))

    def configure_optimizers(self):
        dense = [*self.tower.parameters(), self.position]
        return [torch.optim.SparseAdam(list(self.ids.parameters()), lr=self.cfg.lr_sparse),
                torch.optim.AdamW(dense, lr=self.cfg.lr_dense)]

    def training_step(self, batch, _):
        ids, pos, dense, valid, click = batch
        logits = self(ids, dense, valid) + self.position[pos]
        loss = nn.functional.cross_entropy(logits, click)
        for opt in self.optimizers():
            opt.zero_grad()
        self.manual_backward(loss)
        for opt in self.optimizers():
            opt.step()
        self.log("train_loss", loss, on_step=False, on_epoch=True)

    def validation_step(self, batch, _):
        ids, _, dense, valid, click = batch
        score = self(ids, dense, valid)
        self.ranks.append((score > score.gather(1, click[:, None])).sum(1) + 1)

    def on_validation_epoch_end(self):
        mrr = (1.0 / torch.cat(self.ranks)).mean()
        self.ranks.clear()
        self.log("mrr", mrr)
        log.info("epoch %d%s mrr %.4f", self.current_epoch, " (sanity)" if self.trainer.sanity_checking else "", mrr)


def main():
    cfg = RankerConfig()
    L.seed_everything(cfg.seed, verbose=False)
    df = load_impressions(cfg)
    cut = int(0.8 * cfg.sessions)
    train, test = df[df["session"] < cut], df[df["session"] >= cut]
    centre, scale = train[DENSE].mean(), train[DENSE].std()
    loaders = [DataLoader(Slates(p, centre, scale), cfg.batch, shuffle=p is train, collate_fn=pad_slates)
               for p in (train, test)]
    model = Ranker(cfg)
    trainer = L.Trainer(max_epochs=cfg.epochs, accelerator="cpu", devices=1, logger=False, num_sanity_val_steps=-1,
                        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(model, *loaders)
    chance = test.groupby("session").size().map(lambda n: (1 / np.arange(1, n + 1)).mean()).mean()
    print(json.dumps({"mrr": round(float(trainer.callback_metrics["mrr"]), 4), "mrr_random": round(chance, 4),
                      "position_bias": [round(v, 2) for v in model.position.tolist()]}))


if __name__ == "__main__":
    main()
