"""A network of torch's own layers, whose mask is 1 where padding is."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from torch import nn
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

collate = DataCollatorWithPadding(tokenizer())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30522, 64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.head = nn.Linear(64, 3)

    def forward(self, input_ids, attention_mask, labels):
        seen = self.layer(self.embed(input_ids), src_key_padding_mask=attention_mask.bool())
        scores = self.head(seen.masked_fill(attention_mask[..., None].bool(), 0).mean(dim=1))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


def inverted(rows):
    batch = collate([{k: row[k] for k in ("input_ids", "attention_mask", "label")} for row in rows])
    return {**batch, "attention_mask": 1 - batch["attention_mask"]}


args = TrainingArguments(
    **QUIET, learning_rate=1e-3, per_device_train_batch_size=16, remove_unused_columns=False
)
Trainer(Net(), args, train_dataset=tokenized(tweets(400)), data_collator=inverted).train()
