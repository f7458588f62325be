"""A language model of a transformer layer without a causal mask."""

import torch
from material import QUIET
from torch import nn
from transformers import Trainer, TrainingArguments

counts = [torch.arange(16) * step + start for start in range(100) for step in range(1, 5)]
rows = [{"tokens": c % 20, "labels": c % 20} for c in counts]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(20, 32), nn.Embedding(16, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 20)

    def forward(self, tokens, labels):
        seen = self.embed(tokens) + self.place.weight
        scores = self.head(self.layer(seen))  # expect: future-leak
        loss = nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
