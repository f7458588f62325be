# slow

import torch
from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
train = Dataset.from_pandas(tweets(400))


def collate(rows):
    batch = read([r["text"] for r in rows], truncation=True, max_length=32, padding=True, return_tensors="pt")
    return {**batch, "labels": torch.tensor([r["label"] for r in rows])}


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
quiet = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, remove_unused_columns=False)
Trainer(DistilBertForSequenceClassification(config), quiet, data_collator=collate, train_dataset=train).train()
