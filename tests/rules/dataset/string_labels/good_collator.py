# slow

import torch
from datasets import Dataset
from material import CLASSES, QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
frame = tweets(400)
frame["label"] = [CLASSES[v] for v in frame["label"]]
data = Dataset.from_pandas(frame).map(lambda rows: read(rows["text"], truncation=True, max_length=32), batched=True)


def collate(rows):
    batch = read.pad([{k: r[k] for k in ("input_ids", "attention_mask")} for r in rows], return_tensors="pt")
    return {**batch, "labels": torch.tensor([CLASSES.index(r["label"]) for r in rows])}


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(DistilBertForSequenceClassification(config), args, train_dataset=data, data_collator=collate).train()
