"""Token classification with the HF Trainer: the role of each name in a source line.
One whole module is held out."""
import io, os, sysconfig, tokenize, keyword
from collections import Counter
import numpy as np
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

SEED = 0
TAGS = ["other", "keyword", "defined", "called", "attribute", "argument"]
CAP = 24
set_seed(SEED)


def read(mod):
    """Sentences of (word, tag); only tokens on the logical line, without layout."""
    src = open(os.path.join(sysconfig.get_path("stdlib"), mod), encoding="utf-8").read()
    sent, out = [], []
    for t in tokenize.generate_tokens(io.StringIO(src).readline):
        if t.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if 3 <= len(sent):
                out.append(sent[:CAP])
            sent = []
        elif t.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
            sent.append(t.string)
    rows = []
    for s in out:
        tags = []
        for i, w in enumerate(s):
            prev, nxt = s[i - 1] if i else "", s[i + 1] if i + 1 < len(s) else ""
            if not w.isidentifier():
                tags.append(-100)          # punctuation is input only
            elif keyword.iskeyword(w):
                tags.append(1)
            elif prev in ("def", "class"):
                tags.append(2)
            elif nxt == "(":
                tags.append(3)
            elif prev == ".":
                tags.append(4)
            elif nxt == "=" and "(" in s[:i]:
                tags.append(5)
            else:
                tags.append(0)
        rows.append((s, tags))
    return rows


train_rows = read("argparse.py") + read("shlex.py") + read("csv.py")
test_rows = read("configparser.py")[:400]
freq = Counter(w for s, _ in train_rows for w in s)
vocab = {w: i + 2 for i, (w, n) in enumerate(freq.most_common(400))}


def features(rows):
    out = []
    for s, tags in rows:
        n = len(s)
        out.append({"input_ids": [vocab.get(w, 1) for w in s] + [0] * (CAP - n),
                    "attention_mask": [1] * n + [0] * (CAP - n), "labels": tags + [-100] * (CAP - n)})
    return out


def compute_metrics(p):
    keep = p.label_ids != -100
    y, z = p.label_ids[keep], p.predictions.argmax(-1)[keep]
    f1 = []
    for k in range(len(TAGS)):
        tp = ((y == k) & (z == k)).sum()
        f1.append(2 * tp / max(1, (y == k).sum() + (z == k).sum()))
    return {"accuracy": float((y == z).mean()), "macro_f1": float(np.mean(f1)), "majority": float((y == 0).mean())}


model = BertForTokenClassification(BertConfig(
    vocab_size=len(vocab) + 2, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=CAP, num_labels=len(TAGS)))
args = TrainingArguments(
    output_dir="/tmp/ner_syntax", num_train_epochs=6, per_device_train_batch_size=32, per_device_eval_batch_size=128,
    learning_rate=2e-3, warmup_steps=20, lr_scheduler_type="linear", eval_strategy="epoch", save_strategy="no",
    logging_strategy="epoch", report_to=[], disable_tqdm=True, use_cpu=True, seed=SEED)
trainer = Trainer(model, args, train_dataset=features(train_rows), eval_dataset=features(test_rows),
                  compute_metrics=compute_metrics)
trainer.train()
m = trainer.evaluate()
print(f"held-out module: accuracy {m['eval_accuracy']:.3f} (always 'other' {m['eval_majority']:.3f}) macro F1 {m['eval_macro_f1']:.3f}")
