"""A collator that moves the labels of a causal model by one."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


def collate(rows):
    batch = read.pad([{"input_ids": row["input_ids"]} for row in rows], return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    batch["labels"] = torch.cat([labels[:, 1:], torch.full((len(rows), 1), -100)], dim=1)
    return batch


read = tokenizer()
config = GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=len(read))
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=8)
trainer = Trainer(
    GPT2LMHeadModel(config),
    args,
    train_dataset=tokenized(tweets(200), length=16),
    data_collator=collate,  # expect: labels-shifted-twice
)
trainer.train()
