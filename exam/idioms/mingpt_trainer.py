from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler


class ReverseDataset(Dataset):
    """Input: five digits and then blanks; the model has to write them out backwards."""

    length, blank = 5, 6

    def __init__(self, size=2000, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.seqs = torch.randint(0, 6, (size, self.length), generator=g)

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        s = self.seqs[i]
        x = torch.cat([s, torch.full((self.length,), self.blank)])
        y = torch.cat([torch.full((self.length,), -1), s.flip(0)])
        return x, y


class Model(nn.Module):
    def __init__(self, vocab=7, block=10, dim=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(block, dim)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.head = nn.Linear(dim, vocab, bias=False)

    def configure_optimizers(self, config):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        no_decay = [p for p in self.parameters() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": config["weight_decay"]},
            {"params": no_decay, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=config["learning_rate"], betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        h = self.ln1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        x = x + self.mlp(self.ln2(x))
        logits = self.head(x)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


class Trainer:
    def __init__(self, config, model, train_dataset):
        self.config, self.model, self.train_dataset = config, model, train_dataset
        self.callbacks = defaultdict(list)
        self.iter_num, self.loss = 0, None

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks[onevent]:
            callback(self)

    def run(self):
        self.optimizer = self.model.configure_optimizers(self.config)
        sampler = RandomSampler(self.train_dataset, replacement=True, num_samples=int(1e6))
        train_loader = DataLoader(self.train_dataset, sampler=sampler, batch_size=self.config["batch_size"])
        self.model.train()
        data_iter = iter(train_loader)
        while True:
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(train_loader)
                batch = next(data_iter)
            x, y = batch
            logits, self.loss = self.model(x, y)
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["grad_norm_clip"])
            self.optimizer.step()
            self.trigger_callbacks("on_batch_end")
            self.iter_num += 1
            if self.iter_num >= self.config["max_iters"]:
                break


def batch_end_callback(trainer):
    if trainer.iter_num % 60 == 0:
        print(f"iter {trainer.iter_num}: train loss {trainer.loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(3407)
    config = dict(batch_size=64, learning_rate=3e-3, weight_decay=0.1, grad_norm_clip=1.0, max_iters=241)
    model = Model()
    trainer = Trainer(config, model, ReverseDataset())
    trainer.add_callback("on_batch_end", batch_end_callback)
    trainer.run()

    model.eval()
    x, y = next(iter(DataLoader(ReverseDataset(300, seed=1), batch_size=300)))
    with torch.no_grad():
        pred = model(x)[0][:, 5:].argmax(-1)
    print(f"test: {(pred == y[:, 5:]).float().mean().item():.4f} of the digits right")
