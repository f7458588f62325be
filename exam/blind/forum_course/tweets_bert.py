# sentiment on tweets, bert from scratch because our server has no internet
# EDIT: added the <user>/<url> tokens as somebody here proposed
import os
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import argparse, random, re, tempfile
import numpy as np
from datasets import Dataset, DatasetDict
from sklearn.metrics import accuracy_score, f1_score
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer
from tokenizers.processors import TemplateProcessing
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

arg = argparse.ArgumentParser()
arg.add_argument("--bs", default=32, type=int)
arg.add_argument("--ep", default=4, type=int)
arg.add_argument("--lr", default=1e-3, type=float)
a = arg.parse_args()
set_seed(42)

POS = ["love this", "so happy with it", "best thing ever", "works great", "totally worth it", "made my day"]
NEG = ["hate this", "so disappointed", "worst thing ever", "broke after a day", "waste of money", "never again"]
THING = ["phone", "update", "match", "album", "service", "laptop", "coffee", "movie", "train", "app"]
FILL = ["honestly", "lol", "just saying", "today", "omg", "tbh", "this morning", "again", "for real", ""]


def fake_tweet(r):
    lab = r.randint(0, 1)
    core = r.choice(POS if lab else NEG)
    if r.random() < 0.25:  # negated ones are the hard ones
        core = "not saying i " + ("hate this" if lab else "love this") + " but " + core
    parts = [r.choice(FILL), "the new " + r.choice(THING), core, r.choice(FILL)]
    if r.random() < 0.6:
        parts.insert(0, "@" + r.choice(["bob_77", "ANNA", "helpdesk", "nytimes"]))
    if r.random() < 0.4:
        parts.append("https://t.co/%x" % r.randrange(16 ** 6))
    return " ".join(x for x in parts if x), lab


def clean(t):
    t = re.sub(r"https?://\S+", "<url>", t)
    t = re.sub(r"@\w+", "<user>", t)
    return t


def make(n, seed):
    r = random.Random(seed)
    rows = [fake_tweet(r) for _ in range(n)]
    return Dataset.from_dict({"text": [clean(t) for t, _ in rows], "label": [l for _, l in rows]})


ds = DatasetDict(train=make(1200, 1), test=make(300, 2))

# ---- tokenizer
raw = Tokenizer(WordPiece(unk_token="[UNK]"))
raw.normalizer = BertNormalizer(lowercase=True)
raw.pre_tokenizer = BertPreTokenizer()
raw.train_from_iterator((re.sub(r"<\w+>", "", t) for t in ds["train"]["text"]),
                        WordPieceTrainer(vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
raw.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[
    ("[CLS]", raw.token_to_id("[CLS]")), ("[SEP]", raw.token_to_id("[SEP]"))])
tok = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]",
                              cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
n_new = tok.add_tokens(["<user>", "<url>"])
print("added", n_new, "tokens")


def enc(b):
    return tok(b["text"], truncation=True, max_length=48)


ds = ds.map(enc, batched=True, remove_columns=["text"])
print(tok.convert_ids_to_tokens(ds["train"][0]["input_ids"]))

cfg = BertConfig(vocab_size=tok.vocab_size, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=128, max_position_embeddings=64, num_labels=2,
                 pad_token_id=tok.pad_token_id, hidden_dropout_prob=0.1)
model = BertForSequenceClassification(cfg)
print("params", sum(p.numel() for p in model.parameters()))


def metrics(ev):
    lo, y = ev
    pr = np.argmax(lo, axis=-1)
    return {"acc": accuracy_score(y, pr), "f1": f1_score(y, pr)}


targs = TrainingArguments(
    output_dir=tempfile.mkdtemp(prefix="tweets"), num_train_epochs=a.ep, learning_rate=a.lr,
    per_device_train_batch_size=a.bs, per_device_eval_batch_size=100, eval_strategy="epoch",
    save_strategy="no", logging_steps=20, report_to="none", use_cpu=True, disable_tqdm=True,
    warmup_steps=15, weight_decay=0.01)

trainer = Trainer(model=model, args=targs, train_dataset=ds["train"], eval_dataset=ds["test"],
                  data_collator=DataCollatorWithPadding(tok), compute_metrics=metrics)
trainer.train()
res = trainer.evaluate()
print("FINAL acc=%.4f f1=%.4f" % (res["eval_acc"], res["eval_f1"]))
