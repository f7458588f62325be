"""Tiny T5 learning to emit the sorted, de-duplicated form of a digit string; scored by generation."""
import random
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (GenerationConfig, Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config,
                          T5ForConditionalGeneration, set_seed)

PAD, EOS, OFFSET = 0, 1, 2


@dataclass
class TaskConfig:
    n_train: int = 1600
    n_test: int = 100
    min_len: int = 2
    max_len: int = 5
    symbols: int = 8
    d_model: int = 40
    layers: int = 1
    epochs: int = 6
    batch: int = 40
    lr: float = 6e-3
    smoothing: float = 0.05
    seed: int = 31


def solve(seq):
    return sorted(set(seq))


class SortTask(Dataset):
    def __init__(self, n, c, rng, exclude=()):
        banned, self.pairs = set(exclude), []
        while len(self.pairs) < n:
            seq = tuple(rng.randrange(c.symbols) for _ in range(rng.randint(c.min_len, c.max_len)))
            if seq not in banned:
                self.pairs.append((seq, solve(seq)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        src, tgt = self.pairs[i]
        return {"input_ids": [t + OFFSET for t in src] + [EOS], "labels": [t + OFFSET for t in tgt] + [EOS]}


def pad(rows, value):
    width = max(map(len, rows))
    return torch.tensor([r + [value] * (width - len(r)) for r in rows])


def collate(features):
    ids = pad([f["input_ids"] for f in features], PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(),
            "labels": pad([f["labels"] for f in features], -100)}


class SmoothedTrainer(Seq2SeqTrainer):
    """Label smoothing over non-padding target positions."""

    def __init__(self, *args, smoothing=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.smoothing = smoothing

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        out = model(**inputs)
        labels = inputs["labels"]
        total = torch.nn.functional.cross_entropy(
            out.logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum",
            label_smoothing=self.smoothing if model.training else 0.0)
        count = num_items_in_batch if num_items_in_batch is not None else (labels != -100).sum()
        loss = total / count
        return (loss, out) if return_outputs else loss


def strip(row):
    out = []
    for t in row:
        if t == EOS:
            break
        if t >= OFFSET:
            out.append(int(t))
    return out


def compute_metrics(p):
    guess = np.where(p.predictions < 0, PAD, p.predictions)
    truth = np.where(p.label_ids < 0, PAD, p.label_ids)
    return {"exact": float(np.mean([strip(g) == strip(t) for g, t in zip(guess, truth)]))}


def main():
    c = TaskConfig()
    set_seed(c.seed)
    rng = random.Random(c.seed)
    test = SortTask(c.n_test, c, rng)
    train = SortTask(c.n_train, c, rng, exclude=[p[0] for p in test.pairs])
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=c.symbols + OFFSET, d_model=c.d_model, d_kv=16, d_ff=96, num_layers=c.layers,
        num_decoder_layers=c.layers, num_heads=3, dropout_rate=0.0, pad_token_id=PAD, eos_token_id=EOS,
        decoder_start_token_id=PAD, relative_attention_num_buckets=16, tie_word_embeddings=False))
    model.generation_config = GenerationConfig(max_new_tokens=c.max_len + 1, do_sample=False, pad_token_id=PAD,
                                               eos_token_id=EOS, decoder_start_token_id=PAD)
    with tempfile.TemporaryDirectory() as out:
        args = Seq2SeqTrainingArguments(
            output_dir=out, num_train_epochs=c.epochs, per_device_train_batch_size=c.batch // 2,
            gradient_accumulation_steps=2, per_device_eval_batch_size=100, learning_rate=c.lr,
            lr_scheduler_type="cosine", warmup_steps=20, optim="adafactor", predict_with_generate=True,
            save_strategy="no", logging_steps=60, report_to=[], disable_tqdm=True, seed=c.seed, use_cpu=True)
        trainer = SmoothedTrainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                                  data_collator=collate, compute_metrics=compute_metrics, smoothing=c.smoothing)
        before = trainer.evaluate()
        trainer.train()
        after = trainer.evaluate()
    print(f"exact match before {before['eval_exact']:.3f} after {after['eval_exact']:.3f} "
          f"(loss {before['eval_loss']:.3f} -> {after['eval_loss']:.3f})")


if __name__ == "__main__":
    main()
