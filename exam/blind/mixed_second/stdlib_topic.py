"""Which module does a snippet of source come from?  Small BERT, best checkpoint kept."""
import os, random, re, shutil, sysconfig
import numpy as np
import torch
from collections import Counter
from sklearn.metrics import accuracy_score, f1_score
from transformers import (BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer,
                          TrainingArguments, set_seed)

SEED = 0
MODULES = ["argparse", "tarfile", "smtplib", "turtle", "decimal", "ast"]
MODULES = [m for m in MODULES if os.path.exists(os.path.join(sysconfig.get_path("stdlib"), m + ".py"))]
LEN = 32
set_seed(SEED)


def snippets(mod, size=5, most=260):
    src = open(os.path.join(sysconfig.get_path("stdlib"), mod + ".py"), encoding="utf-8").read().splitlines()
    src = [l for l in src if l.strip()][30:]
    out = ["\n".join(src[i:i + size]) for i in range(0, len(src), size)]
    random.shuffle(out)
    return out[:most]


def words(s):
    return re.findall(r"[A-Za-z]+|[^\sA-Za-z]", s)


rows = [(s, i) for i, m in enumerate(MODULES) for s in snippets(m)]
random.shuffle(rows)
cut = int(.7 * len(rows))
freq = Counter(w for s, _ in rows[:cut] for w in words(s))
vocab = {w: i + 3 for i, (w, _) in enumerate(freq.most_common(1500))}


def encode(rows):
    data = []
    for s, y in rows:
        ids = [2] + [vocab.get(w, 1) for w in words(s)][:LEN - 1]
        pad = LEN - len(ids)
        data.append({"input_ids": ids + [0] * pad, "attention_mask": [1] * len(ids) + [0] * pad, "labels": y})
    return data


train, valid = encode(rows[:cut]), encode(rows[cut:])


def compute_metrics(p):
    pred = np.argmax(p.predictions, -1)
    return {"accuracy": accuracy_score(p.label_ids, pred), "macro_f1": f1_score(p.label_ids, pred, average="macro")}


model = BertForSequenceClassification(BertConfig(
    vocab_size=len(vocab) + 3, hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=LEN, num_labels=len(MODULES)))
out = "/tmp/stdlib_topic"
shutil.rmtree(out, ignore_errors=True)
args = TrainingArguments(
    output_dir=out, num_train_epochs=8, per_device_train_batch_size=32, per_device_eval_batch_size=128,
    learning_rate=2e-3, weight_decay=0.01, warmup_steps=30, eval_strategy="epoch", save_strategy="epoch",
    save_total_limit=2, load_best_model_at_end=True, metric_for_best_model="macro_f1", greater_is_better=False,
    logging_strategy="epoch", report_to=[], disable_tqdm=True, use_cpu=True, seed=SEED)
trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid, compute_metrics=compute_metrics)
trainer.train()
print("history", [round(h["eval_macro_f1"], 3) for h in trainer.state.log_history if "eval_macro_f1" in h])
res = trainer.evaluate()
print("checkpoint used:", os.path.basename(trainer.state.best_model_checkpoint or ""))
print(f"deployed model: accuracy {res['eval_accuracy']:.3f} macro F1 {res['eval_macro_f1']:.3f}")
