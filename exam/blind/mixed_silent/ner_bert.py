import random

import numpy as np
import torch
from datasets import Dataset
from transformers import (BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed)

set_seed(0)

LABELS = ["O", "PER", "LOC"]
FIRST = ["mia", "noah", "lena", "paul", "ida", "karl", "rosa", "hugo"]
TOWN = ["bonn", "ulm", "kiel", "trier", "essen", "jena", "mia", "paul"]   # some are both
FILL = "the a man woman dog saw went slowly then and very old house red car bus train".split()


def make_sentence():
    toks, tags = [], []
    for _ in range(random.randint(3, 14)):
        r = random.random()
        if r < 0.12:
            toks += ["mr" if random.random() < 0.5 else "dr", random.choice(FIRST)]
            tags += ["O", "PER"]
        elif r < 0.24:
            toks += [random.choice(["in", "to", "from"]), random.choice(TOWN)]
            tags += ["O", "LOC"]
        else:
            toks.append(random.choice(FILL))
            tags.append("O")
    return {"tokens": toks, "tags": tags}


raw = [make_sentence() for _ in range(1500)]
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]"] + sorted({w for r in raw for w in r["tokens"]}))}
MAX_LEN = 64


def encode(row):
    ids = [vocab[w] for w in row["tokens"]][:MAX_LEN]
    tags = [LABELS.index(t) for t in row["tags"]][:MAX_LEN]
    pad = MAX_LEN - len(ids)
    return {
        "input_ids": ids + [0] * pad,
        "attention_mask": [1] * len(ids) + [0] * pad,
        "labels": tags + [0] * pad,
    }


ds = Dataset.from_list(raw).map(encode, remove_columns=["tokens", "tags"])
ds = ds.train_test_split(test_size=0.2, seed=0)

model = BertForTokenClassification(BertConfig(
    vocab_size=len(vocab), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=64, num_labels=3,
    id2label=dict(enumerate(LABELS)), label2id={l: i for i, l in enumerate(LABELS)}))


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=-1)
    keep = p.label_ids != -100
    y, yhat = p.label_ids[keep], preds[keep]
    return {"token_accuracy": float((y == yhat).mean())}


args = TrainingArguments(
    output_dir="out_ner",
    learning_rate=1e-3,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=64,
    num_train_epochs=1,
    weight_decay=0.01,
    eval_strategy="steps",
    eval_steps=19,
    logging_steps=19,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)

trainer = Trainer(model=model, args=args, train_dataset=ds["train"], eval_dataset=ds["test"],
                  compute_metrics=compute_metrics)
trainer.train()
metrics = trainer.evaluate()
print("final:", {k: round(v, 4) for k, v in metrics.items()})

sample = ds["test"][0]
with torch.no_grad():
    out = model(input_ids=torch.tensor([sample["input_ids"]]),
                attention_mask=torch.tensor([sample["attention_mask"]])).logits.argmax(-1)[0]
inv = {i: w for w, i in vocab.items()}
print(" ".join(f"{inv[i]}/{LABELS[t]}" for i, t in zip(sample["input_ids"], out.tolist()) if i))
