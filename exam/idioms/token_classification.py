"""Toy named-entity recognition with padding and sub-word alignment."""
import random
import tempfile
import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (BertConfig, BertForTokenClassification, DataCollatorForTokenClassification, PreTrainedTokenizerFast,
                          Trainer, TrainingArguments, set_seed)

set_seed(0)
random.seed(0)
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
first, last = ["anna", "peter", "maria", "ivan", "lucy"], ["smith", "novak", "rossi", "silva"]
city, suffix = ["new", "old", "port", "lake"], ["york", "town", "bridge", "haven"]
fill = ["we", "met", "in", "today", "and", "saw", "from", "called", "the", "nearby", "gladly", "again"]


def sentence():
    words, tags = [], []
    for _ in range(random.randint(2, 4)):
        for w in random.choices(fill, k=random.randint(1, 3)):
            words.append(w), tags.append(0)
        if random.random() < 0.5:
            words += [random.choice(first), random.choice(last)]
            tags += [1, 2]
        else:
            words += [random.choice(city), random.choice(suffix)]
            tags += [3, 4]
    return {"tokens": words, "ner_tags": tags}


pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + first + city + fill + suffix
pieces += sorted({w[:3] for w in last}) + sorted({"##" + w[3:] for w in last})
vocab = {t: i for i, t in enumerate(dict.fromkeys(pieces))}
tk = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
tk.normalizer, tk.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
tk.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tk, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def tokenize_and_align(batch):
    enc = tokenizer(batch["tokens"], is_split_into_words=True, truncation=True, max_length=48)
    enc["labels"] = []
    for i, tags in enumerate(batch["ner_tags"]):
        previous, row = None, []
        for w in enc.word_ids(batch_index=i):
            row.append(-100 if w is None or w == previous else tags[w])
            previous = w
        enc["labels"].append(row)
    return enc


def compute_metrics(p):
    pred, mask = p.predictions.argmax(-1), p.label_ids != -100
    entity = mask & (p.label_ids > 0)
    return {"accuracy": float((pred == p.label_ids)[mask].mean()), "entity_recall": float((pred == p.label_ids)[entity].mean())}


def main():
    make = lambda n: Dataset.from_list([sentence() for _ in range(n)]).map(tokenize_and_align, batched=True, remove_columns=["tokens", "ner_tags"])
    train_ds, eval_ds = make(400), make(100)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                        max_position_embeddings=64, num_labels=len(LABELS))
    model = BertForTokenClassification(config)
    with tempfile.TemporaryDirectory() as tmp:
        args = TrainingArguments(tmp, num_train_epochs=5, per_device_train_batch_size=20, per_device_eval_batch_size=50, learning_rate=3e-3,
                                 eval_strategy="epoch", logging_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True,
                                 disable_tqdm=True)
        trainer = Trainer(model, args, train_dataset=train_ds, eval_dataset=eval_ds, compute_metrics=compute_metrics,
                          data_collator=DataCollatorForTokenClassification(tokenizer), processing_class=tokenizer)
        trainer.train()
        print({k: round(v, 3) for k, v in trainer.evaluate().items() if k in ("eval_loss", "eval_accuracy", "eval_entity_recall")})


if __name__ == "__main__":
    main()
