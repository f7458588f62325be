import logging
from dataclasses import dataclass, field

import hydra
import torch
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn

log = logging.getLogger(__name__)


@dataclass
class ModelConfig:
    hidden: int = 32
    dropout: float = 0.1


@dataclass
class OptimConfig:
    lr: float = 5e-3
    weight_decay: float = 1e-5


@dataclass
class Config:
    seed: int = 12
    epochs: int = 15
    batch_size: int = 32
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)


cs = ConfigStore.instance()
cs.store(name="config", node=Config)


def build(cfg: ModelConfig) -> nn.Module:
    return nn.Sequential(nn.Linear(30, cfg.hidden), nn.ReLU(), nn.Dropout(cfg.dropout), nn.Linear(cfg.hidden, 1))


@hydra.main(version_base=None, config_name="config")
def main(cfg: Config) -> None:
    print(OmegaConf.to_yaml(cfg))
    torch.manual_seed(cfg.seed)
    X, y = load_breast_cancer(return_X_y=True)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, random_state=cfg.seed, stratify=y)
    mean, std = X_tr.mean(0), X_tr.std(0)
    X_tr, X_te = (torch.tensor((a - mean) / std, dtype=torch.float32) for a in (X_tr, X_te))
    y_tr, y_te = (torch.tensor(a, dtype=torch.float32).unsqueeze(1) for a in (y_tr, y_te))
    model = build(cfg.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr, weight_decay=cfg.optim.weight_decay)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for idx in torch.randperm(len(X_tr)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = criterion(model(X_tr[idx]), y_tr[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            logits = model(X_te)
            acc = ((logits > 0).float() == y_te).float().mean().item()
        if epoch % 7 == 0 or epoch == cfg.epochs - 1:
            print(f"epoch {epoch} train loss {running / len(X_tr):.4f} test loss {criterion(logits, y_te).item():.4f} test acc {acc:.4f}")
    log.info("done")


if __name__ == "__main__":
    main()
