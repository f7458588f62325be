"""The adding problem with a length curriculum (Accelerate, streaming data)."""
import argparse

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, IterableDataset


class AddingStream(IterableDataset):
    """Sequences of (value, marker); the target is the sum of the two marked values."""

    def __init__(self, n, max_len, seed):
        self.n, self.max_len, self.seed = n, max_len, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed * 1000 + self.epoch)
        for _ in range(self.n):
            length = int(torch.randint(max(3, self.max_len // 2), self.max_len + 1, (1,), generator=g))
            values = torch.rand(length, generator=g)
            marks = torch.zeros(length)
            marks[torch.randperm(length, generator=g)[:2]] = 1.0
            yield torch.stack([values, marks], dim=1), (values * marks).sum()


def collate(rows):
    lengths = torch.tensor([len(s) for s, _ in rows])
    x = nn.utils.rnn.pad_sequence([s for s, _ in rows], batch_first=True)
    return x, lengths, torch.stack([t for _, t in rows])


class AddingLSTM(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.LSTM(2, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))
        with torch.no_grad():
            self.rnn.bias_hh_l0[hidden:2 * hidden].fill_(1.0)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (h, _) = self.rnn(packed)
        return self.out(h[-1]).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--per-epoch", type=int, default=1600)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--accum", type=int, default=2)
    ap.add_argument("--final-len", type=int, default=16)
    args = ap.parse_args()

    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accum)
    model = AddingLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda e: 1.0 if e < args.epochs * 0.6 else 0.3 if e < args.epochs * 0.85 else 0.08)
    model, optimizer = accelerator.prepare(model, optimizer)

    stream = AddingStream(args.per_epoch, max_len=4, seed=1)
    for epoch in range(args.epochs):
        stream.set_epoch(epoch)
        stream.max_len = min(args.final_len, 4 + 2 * epoch)
        loader = DataLoader(stream, batch_size=16, collate_fn=collate)
        model.train()
        total, steps = 0.0, 0
        for x, lengths, target in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x, lengths), target)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
            steps += 1
        scheduler.step()
        if epoch % 3 == 2:
            accelerator.print(f"epoch {epoch + 1} max length {stream.max_len} mse {total / steps:.4f}")

    model.eval()
    test = DataLoader(AddingStream(600, args.final_len, seed=77), batch_size=100, collate_fn=collate)
    preds, targets = [], []
    with torch.no_grad():
        for x, lengths, target in test:
            preds.append(model(x, lengths))
            targets.append(target)
    preds, targets = torch.cat(preds), torch.cat(targets)
    mse = nn.functional.mse_loss(preds, targets).item()
    accelerator.print(f"test mse {mse:.4f} (predicting the mean {targets.var(unbiased=False).item():.4f})")


if __name__ == "__main__":
    main()
