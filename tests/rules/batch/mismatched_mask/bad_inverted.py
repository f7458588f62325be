"""A collator whose mask is 1 where padding is."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.full((len(rows), longest), read.pad_token_id)
    mask = torch.ones_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
        mask[number, : len(row["input_ids"])] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([row["label"] for row in rows])}


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
trainer = Trainer(
    DistilBertForSequenceClassification(config),
    TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16),
    train_dataset=tokenized(tweets(400)),
    data_collator=collate,  # expect: mismatched-mask
)
trainer.train()
