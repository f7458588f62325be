"""Token classification on order e-mails (product / quantity / city), word-level vocabulary, HF Trainer."""
import random
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from transformers import (BertConfig, BertForTokenClassification, EarlyStoppingCallback, Trainer, TrainingArguments,
                          set_seed)

LABELS = ["O", "B-PROD", "I-PROD", "B-QTY", "B-CITY", "I-CITY"]
PRODUCTS = ["steel screws", "oak board", "paint", "copper wire", "drill", "sand paper", "floor tiles", "glue"]
CITIES = ["Lyon", "Graz", "Porto Alegre", "Bergen", "New Ulm", "Ghent", "San Jose", "Turin"]
NUMBERS = "two three four five six ten twenty fifty".split()
TEMPLATES = [
    "please send {q} boxes of {p} to {c} as soon as possible",
    "we ordered {p} for our shop in {c} but received {q} pieces too many",
    "hello , {q} {p} were missing , our warehouse is {c}",
    "is {p} still on stock ? we need {q} in {c} next week",
    "the driver from {c} has {q} pallets with {p} on board",
    "as of {q} o clock nobody in {c} had seen the {p} we paid for",
]


def sample(rng):
    tokens, tags = [], []
    for word in rng.choice(TEMPLATES).split():
        slot = {"{q}": (NUMBERS, "QTY"), "{p}": (PRODUCTS, "PROD"), "{c}": (CITIES, "CITY")}.get(word)
        if slot is None:
            tokens.append(word)
            tags.append("O")
        else:
            for i, w in enumerate(rng.choice(slot[0]).lower().split()):
                tokens.append(w)
                tags.append(("B-" if i == 0 else "I-") + slot[1])
    if rng.random() < 0.3:
        j = rng.randrange(len(tokens))
        tokens[j] = tokens[j] + "x"      # typo -> unknown word
    return {"tokens": tokens, "tags": tags}


@dataclass
class PadTogether:
    pad_id: int = 0

    def __call__(self, rows):
        width = max(len(r["input_ids"]) for r in rows)
        width += -width % 4
        fill = lambda key, value: torch.tensor([r[key] + [value] * (width - len(r[key])) for r in rows])
        return {"input_ids": fill("input_ids", self.pad_id), "attention_mask": fill("attention_mask", 0),
                "labels": fill("labels", -100)}


def spans(tags):
    out, start = set(), None
    for i, t in enumerate(tags + ["O"]):
        if start is not None and not t.startswith("I-"):
            out.add((start, i, tags[start][2:]))
            start = None
        if t.startswith("B-"):
            start = i
    return out


def compute_metrics(p):
    hit = n_pred = n_gold = 0
    for pred, gold in zip(p.predictions.argmax(-1), p.label_ids):
        keep = gold != -100
        a, b = spans([LABELS[k] for k in pred[keep]]), spans([LABELS[k] for k in gold[keep]])
        hit, n_pred, n_gold = hit + len(a & b), n_pred + len(a), n_gold + len(b)
    return {"span_f1": 2 * hit / max(n_pred + n_gold, 1)}


def main():
    set_seed(31)
    rng = random.Random(31)
    raw = DatasetDict({name: Dataset.from_list([sample(rng) for _ in range(n)])
                       for name, n in [("train", 900), ("validation", 200), ("test", 300)]})
    words = sorted({w for row in raw["train"]["tokens"] for w in row if not w.endswith("x")})
    stoi = {w: i + 4 for i, w in enumerate(words)}     # 0 pad 1 unk 2 cls 3 sep

    def encode(row):
        ids = [2] + [stoi.get(w, 1) for w in row["tokens"]] + [3]
        return {"input_ids": ids, "attention_mask": [1] * len(ids),
                "labels": [-100] + [LABELS.index(t) for t in row["tags"]] + [-100]}

    data = raw.map(encode, remove_columns=["tokens", "tags"])
    config = BertConfig(vocab_size=len(stoi) + 4, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=40, num_labels=len(LABELS),
                        id2label=dict(enumerate(LABELS)), label2id={l: i for i, l in enumerate(LABELS)})
    model = BertForTokenClassification(config)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=10, learning_rate=3e-3, warmup_steps=30,
        per_device_train_batch_size=16, gradient_accumulation_steps=2, per_device_eval_batch_size=100,
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True,
        metric_for_best_model="span_f1", greater_is_better=True, logging_steps=29, report_to=[], disable_tqdm=True,
        use_cpu=True)
    trainer = Trainer(model=model, args=args, data_collator=PadTogether(), train_dataset=data["train"],
                      eval_dataset=data["validation"], compute_metrics=compute_metrics,
                      callbacks=[EarlyStoppingCallback(early_stopping_patience=3)])
    trainer.train()
    print("best checkpoint span f1 on validation", round(trainer.state.best_metric, 4))
    print("test span f1 %.4f" % trainer.predict(data["test"]).metrics["test_span_f1"])


if __name__ == "__main__":
    main()
