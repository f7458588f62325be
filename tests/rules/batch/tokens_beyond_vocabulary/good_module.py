"""A module of one's own whose table holds every word."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

WORDS = 30_522


class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, 32)
        self.head = torch.nn.Linear(32, 3)

    def forward(self, input_ids, attention_mask, labels=None):
        mask = attention_mask.unsqueeze(-1)
        logits = self.head((self.words(input_ids) * mask).sum(1) / mask.sum(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32)
data = tokenized(tweets(400))
trainer = Trainer(Bag(), args, train_dataset=data, data_collator=DataCollatorWithPadding(tokenizer()))
trainer.train()
