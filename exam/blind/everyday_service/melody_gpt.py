"""Tiny GPT-2 on transposed melodies (homework 4: language models on non-text data)."""
import random
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

PHRASES = [
    [0, 4, 7, 12, 7, 4], [0, 2, 4, 5, 7, 9, 11, 12], [0, 7, 4, 7], [0, 3, 7, 10, 7, 3],
    [0, -1, 0, 5, 3, 2], [0, 5, 9, 5],
]
LOW, HIGH = 48, 84
BAR = 1          # token that opens a piece
OFFSET = 2       # 0 = unused, 1 = BAR


@dataclass
class HParams:
    block: int = 32
    n_embd: int = 64
    n_layer: int = 2
    n_head: int = 4
    epochs: int = 8
    lr: float = 3e-3
    batch: int = 32
    seed: int = 8


def compose(length, rng):
    """one phrase, transposed to a key, repeated until the piece is full"""
    phrase = rng.choice(PHRASES)
    key = rng.randint(LOW + 1, HIGH - 13)
    notes = [key + p - LOW + OFFSET for p in phrase]
    out = [BAR]
    while len(out) < length:
        out.extend(notes)
    return out[:length]


class MelodyDataset(Dataset):
    def __init__(self, pieces, block):
        self.pieces = pieces
        self.block = block

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, i):
        piece = torch.tensor(self.pieces[i][:self.block + 1], dtype=torch.long)
        return {"input_ids": piece[:-1], "labels": piece[1:]}


@torch.no_grad()
def continue_piece(model, prompt, n):
    model.eval()
    ids = torch.tensor([prompt])
    for _ in range(n):
        logits = model(input_ids=ids).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids[0, len(prompt):].tolist()


def main():
    hp = HParams()
    set_seed(hp.seed)
    rng = random.Random(hp.seed)
    pieces = [compose(hp.block + 1, rng) for _ in range(1300)]
    train, test = pieces[:1100], pieces[1100:]

    config = GPT2Config(vocab_size=HIGH - LOW + OFFSET + 1, n_positions=hp.block + 1, n_embd=hp.n_embd,
                        n_layer=hp.n_layer, n_head=hp.n_head, bos_token_id=BAR, eos_token_id=BAR,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    print("parameters: %d" % sum(p.numel() for p in model.parameters()))

    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=hp.epochs, learning_rate=hp.lr,
        per_device_train_batch_size=hp.batch, per_device_eval_batch_size=100,
        lr_scheduler_type="cosine", warmup_steps=20, max_grad_norm=1.0,
        logging_steps=70, eval_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True,
        use_cpu=True, seed=hp.seed)
    trainer = Trainer(model=model, args=args, train_dataset=MelodyDataset(train, hp.block),
                      eval_dataset=MelodyDataset(test, hp.block))
    trainer.train()
    print("held-out loss %.4f" % trainer.evaluate()["eval_loss"])

    right, total = 0, 0
    for piece in test[:60]:
        generated = continue_piece(model, piece[:18], 10)
        truth = piece[18:28]
        right += int(np.sum(np.array(generated) == np.array(truth)))
        total += len(truth)
    print("notes continued correctly: %.3f" % (right / total))


if __name__ == "__main__":
    main()
