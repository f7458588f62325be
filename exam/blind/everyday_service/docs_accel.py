"""Document tagging + urgency score (two heads) with accelerate, small micro batches to fit in memory."""
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_WORDS, N_TAGS = 400, 6


@dataclass
class Config:
    micro_batch: int = 8
    accumulate: int = 8
    epochs: int = 8
    lr: float = 0.8
    momentum: float = 0.9
    urgency_weight: float = 0.5
    seed: int = 2


class Documents(Dataset):
    """bags of word ids drawn from tag-specific distributions; some words carry urgency"""

    def __init__(self, n, seed):
        world = np.random.default_rng(99)
        topics = world.dirichlet(np.full(N_WORDS, 0.06), size=N_TAGS)
        urgency = world.normal(0, 1, N_WORDS)
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            tag = int(rng.integers(N_TAGS))
            mix = 0.6 * topics[tag] + 0.4 / N_WORDS
            words = rng.choice(N_WORDS, size=int(rng.integers(10, 40)), p=mix)
            score = urgency[words].mean() * 3 + rng.normal(0, 0.1)
            self.items.append((torch.from_numpy(words), tag, np.float32(score)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    words = torch.cat([b[0] for b in batch])
    sizes = torch.tensor([0] + [len(b[0]) for b in batch[:-1]])
    return {"words": words, "offsets": sizes.cumsum(0), "tag": torch.tensor([b[1] for b in batch]),
            "urgency": torch.tensor([b[2] for b in batch])}


class Tagger(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.bag = nn.EmbeddingBag(N_WORDS, dim, mode="mean")
        self.hidden = nn.Sequential(nn.Linear(dim, 64), nn.ReLU())
        self.tag = nn.Linear(64, N_TAGS)
        self.urgency = nn.Linear(dim, 1)

    def forward(self, words, offsets):
        z = self.bag(words, offsets)
        return self.tag(self.hidden(z)), self.urgency(z).squeeze(-1)


@torch.no_grad()
def evaluate(model, loader, accelerator):
    model.eval()
    right = n = 0
    sq = 0.0
    for batch in loader:
        tag, urgency = model(batch["words"], batch["offsets"])
        right += (tag.argmax(-1) == batch["tag"]).sum().item()
        sq += ((urgency - batch["urgency"]) ** 2).sum().item()
        n += len(batch["tag"])
    return right / n, (sq / n) ** 0.5


def main(cfg):
    accelerator = Accelerator(cpu=True)
    set_seed(cfg.seed)
    train_loader = DataLoader(Documents(1920, 1), batch_size=cfg.micro_batch, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Documents(600, 2), batch_size=100, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)
    ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()

    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for step, batch in enumerate(train_loader, start=1):
            tag, urgency = model(batch["words"], batch["offsets"])
            loss = ce(tag, batch["tag"]) + cfg.urgency_weight * mse(urgency, batch["urgency"])
            accelerator.backward(loss / cfg.accumulate)
            if step % cfg.accumulate == 0 or step == len(train_loader):
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            optimizer.zero_grad()
            running += loss.item()
        acc, rmse = evaluate(model, test_loader, accelerator)
        accelerator.print(f"epoch {epoch} loss {running / len(train_loader):.3f} tag acc {acc:.3f} urgency rmse {rmse:.3f}")
    accelerator.print(f"final tag accuracy {acc:.4f}, urgency rmse {rmse:.4f}")


if __name__ == "__main__":
    main(Config())
