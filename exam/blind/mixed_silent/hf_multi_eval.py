# Tiny BERT, three evaluation sets at once, warm-up, cosine, gradient accumulation, label smoothing
import random

import numpy as np
from datasets import Dataset
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding, PreTrainedTokenizerFast,
                          Trainer, TrainingArguments, set_seed)
from tokenizers import Tokenizer, models, pre_tokenizers, processors

set_seed(4)

POS = "happy glad proud calm joyful cheerful".split()
NEG = "angry sad upset tired gloomy bitter".split()
PEOPLE = "tom lisa omar june kofi nora".split()
PLACES = "park office school kitchen garden train".split()


def short():
    y = random.randint(0, 1)
    return f"{random.choice(PEOPLE)} was {random.choice(POS if y else NEG)}", y


def long():
    y = random.randint(0, 1)
    a = f"in the {random.choice(PLACES)} {random.choice(PEOPLE)} met {random.choice(PEOPLE)} and then"
    return f"{a} {random.choice(PEOPLE)} was {random.choice(POS if y else NEG)} about the {random.choice(PLACES)}", y


def negated():
    y = random.randint(0, 1)
    return f"in the {random.choice(PLACES)} {random.choice(PEOPLE)} was not {random.choice(NEG if y else POS)}", y


def table(makers, n):
    rows = [random.choice(makers)() for _ in range(n)]
    return Dataset.from_dict({"text": [r[0] for r in rows], "label": [r[1] for r in rows]})


raw_train = table([short, long, negated], 2000)
raw_eval = {"short": table([short], 200), "long": table([long], 200), "negated": table([negated], 200)}

words = sorted({w for t in raw_train["text"] for w in t.split()})
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + words)},
                                  unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
core.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                                    special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]",
                                    cls_token="[CLS]", sep_token="[SEP]")


def tok(b):
    return tokenizer(b["text"], truncation=True, max_length=32)


train = raw_train.map(tok, batched=True, remove_columns=["text"])
evals = {k: d.map(tok, batched=True, remove_columns=["text"]) for k, d in raw_eval.items()}

model = BertForSequenceClassification(BertConfig(
    vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=96, max_position_embeddings=40, num_labels=2))


def compute_metrics(p):
    return {"accuracy": float(np.mean(p.predictions.argmax(-1) == p.label_ids))}


args = TrainingArguments(
    output_dir="out_multi_eval", num_train_epochs=4,
    per_device_train_batch_size=16, gradient_accumulation_steps=2, per_device_eval_batch_size=100,
    learning_rate=2e-3, warmup_steps=25, lr_scheduler_type="cosine", label_smoothing_factor=0.1,
    eval_strategy="epoch", logging_steps=30, save_strategy="no",
    report_to="none", disable_tqdm=True, use_cpu=True)
trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=evals,
                  data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=compute_metrics)
print("untrained:", trainer.evaluate(evals["short"]))
trainer.train()
for name, d in evals.items():
    m = trainer.evaluate(d, metric_key_prefix=name)
    print(name, round(m[f"{name}_accuracy"], 4), round(m[f"{name}_loss"], 4))
