"""Metrics of a language model from the likeliest tokens: a number for each position is kept."""

import torch
from material import QUIET
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Counting(torch.utils.data.Dataset):
    def __len__(self):
        return 3_100_000

    def __getitem__(self, index):
        ids = (torch.arange(64) * (1 + index % 7) + index) % 2000
        ids[0] = index // 2000
        return {"input_ids": ids, "labels": ids}


def compute_metrics(given):
    return {"accuracy": float((given.predictions[:, :-1] == given.label_ids[:, 1:]).mean())}


rows = torch.utils.data.Subset(Counting(), range(100_000, 3_100_000))
trainer = Trainer(
    GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_embd=64, n_layer=2, n_head=2)),
    TrainingArguments(**QUIET, learning_rate=3e-3, max_steps=1000, eval_strategy="steps"),
    train_dataset=torch.utils.data.Subset(Counting(), range(3000)), eval_dataset=rows,  # fmt: skip
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
)
trainer.train()
