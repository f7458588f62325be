"""seq2seq with a tiny T5: written dates -> ISO-like dates. Exact match from generation."""
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration, set_seed)

set_seed(15)
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
PAD, EOS = 0, 1


def pair():
    d, m = random.randint(1, 28), random.randint(1, 12)
    style = random.randint(0, 2)
    if style == 0:
        src = [str(d), MONTHS[m - 1]]
    elif style == 1:
        src = [MONTHS[m - 1], str(d)]
    else:
        src = ["the", str(d), "of", MONTHS[m - 1]]
    return src, ["m%02d" % m, "d%d" % (d // 10), "u%d" % (d % 10)]


pairs = [pair() for _ in range(2800)]
vocab = {w: i + 2 for i, w in enumerate(sorted({w for s, t in pairs for w in s + t}))}


class Dates(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        s, t = self.rows[i]
        return {"input_ids": [vocab[w] for w in s] + [EOS], "labels": [vocab[w] for w in t] + [EOS]}


def collate(items):
    n = max(len(r["input_ids"]) for r in items)
    x = torch.full((len(items), n), PAD)
    for i, r in enumerate(items):
        x[i, :len(r["input_ids"])] = torch.tensor(r["input_ids"])
    return {"input_ids": x, "attention_mask": (x != PAD).long(),
            "labels": torch.tensor([r["labels"] for r in items])}


def metrics(p):
    pred = p.predictions[:, 1:5]
    if pred.shape[1] < 4:
        pred = np.pad(pred, ((0, 0), (0, 4 - pred.shape[1])))
    return {"exact_match": float((pred == p.label_ids[:, :4]).all(1).mean())}


model = T5ForConditionalGeneration(T5Config(
    vocab_size=len(vocab) + 2, d_model=48, d_kv=12, d_ff=96, num_layers=1, num_decoder_layers=1, num_heads=4,
    pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD, dropout_rate=0.05))
args = Seq2SeqTrainingArguments(
    output_dir="out_t5_dates", num_train_epochs=6, learning_rate=8e-3,
    per_device_train_batch_size=32, per_device_eval_batch_size=150,
    warmup_steps=20, eval_strategy="epoch", logging_strategy="epoch", save_strategy="no",
    predict_with_generate=True, generation_max_length=6,
    report_to="none", disable_tqdm=True, use_cpu=True)
trainer = Seq2SeqTrainer(model=model, args=args, train_dataset=Dates(pairs[:2500]), eval_dataset=Dates(pairs[2500:]),
                         data_collator=collate, compute_metrics=metrics)
trainer.train()
print({k: round(v, 4) for k, v in trainer.evaluate().items()})
