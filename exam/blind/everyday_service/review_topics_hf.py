"""Topic classifier for shop reviews, trained from scratch with the HF Trainer.

Notebook exported to a script; reads train.csv / test.csv which the first cell writes.
"""
import os
import random
import re
import tempfile

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer,
                          TrainingArguments, set_seed)

set_seed(13)
random.seed(13)
WORK = tempfile.mkdtemp()

# %% data
WORDS = {
    "delivery": "courier late parcel box tracking shipped driver doorstep".split(),
    "price": "expensive cheap discount bargain cost overpriced coupon value".split(),
    "quality": "broke sturdy flimsy stitching durable scratched solid cracked".split(),
    "service": "agent polite rude answered hotline helpful chat waited".split(),
    "size": "tight loose fits large small waist sleeve length".split(),
}
COMMON = "the i it was very and this my for of with to but really ordered bought again would item".split()


def write_reviews(path, n):
    rows = []
    for _ in range(n):
        topic = random.choice(list(WORDS))
        toks = random.choices(COMMON, k=random.randint(6, 16))
        for w in random.sample(WORDS[topic], 2):
            toks.insert(random.randrange(len(toks)), w)
        if random.random() < 0.25:
            toks.append(random.choice(WORDS[random.choice(list(WORDS))]))
        rows.append({"review": " ".join(toks), "topic": topic})
    pd.DataFrame(rows).to_csv(path, index=False)


write_reviews(os.path.join(WORK, "train.csv"), 1500)
write_reviews(os.path.join(WORK, "test.csv"), 400)
train_df = pd.read_csv(os.path.join(WORK, "train.csv"))
test_df = pd.read_csv(os.path.join(WORK, "test.csv"))

# %% tokenizer
tokens = sorted({w for text in train_df.review for w in re.findall(r"[a-z]+", text)})
stoi = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}
stoi.update({w: i + 3 for i, w in enumerate(tokens)})
MAX_LEN = 24


def encode(text):
    ids = [2] + [stoi.get(w, 1) for w in re.findall(r"[a-z]+", text)][:MAX_LEN - 1]
    mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
    return ids + [0] * (MAX_LEN - len(ids)), mask


def preprocess(df):
    df = df.copy()
    df["labels"] = pd.factorize(df["topic"])[0]
    enc = [encode(t) for t in df["review"]]
    return Dataset.from_dict({
        "input_ids": [e[0] for e in enc],
        "attention_mask": [e[1] for e in enc],
        "labels": df["labels"].tolist(),
    })


train_ds, test_ds = preprocess(train_df), preprocess(test_df)
num_labels = train_df.topic.nunique()
print(train_ds)

# %% model
config = DistilBertConfig(vocab_size=len(stoi), max_position_embeddings=MAX_LEN, dim=48, n_layers=2, n_heads=4,
                          hidden_dim=96, dropout=0.1, num_labels=num_labels, pad_token_id=0)
model = DistilBertForSequenceClassification(config)


def compute_metrics(p):
    pred = p.predictions.argmax(-1)
    return {"accuracy": accuracy_score(p.label_ids, pred), "f1_macro": f1_score(p.label_ids, pred, average="macro")}


args = TrainingArguments(
    output_dir=os.path.join(WORK, "out"),
    num_train_epochs=6,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    learning_rate=2e-3,
    warmup_steps=20,
    weight_decay=0.01,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=47,
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(model=model, args=args, train_dataset=train_ds, eval_dataset=test_ds,
                  compute_metrics=compute_metrics)
trainer.train()
metrics = trainer.evaluate()
print("test accuracy %.4f  macro f1 %.4f" % (metrics["eval_accuracy"], metrics["eval_f1_macro"]))
