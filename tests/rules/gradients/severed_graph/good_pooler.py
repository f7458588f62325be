"""A loaded encoder under no_grad with a head of its own; its pooler is not used."""

import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from torch import nn
from transformers import AutoModel, Trainer, TrainingArguments


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = AutoModel.from_pretrained(MINILM)
        self.head = nn.Linear(384, 3)

    def forward(self, input_ids, attention_mask, labels):
        with torch.no_grad():
            hidden = self.encoder(input_ids, attention_mask).last_hidden_state
        logits = self.head(hidden.mean(1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Probe(), args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
