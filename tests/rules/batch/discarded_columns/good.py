"""A model that takes whatever it is given, and gets it."""

from material import QUIET, tokenized, tokenizer, tweets
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
        self.inner = DistilBertForSequenceClassification(config)

    def forward(self, **inputs):
        return self.inner(**inputs)


args = TrainingArguments(
    **QUIET, learning_rate=1e-3, per_device_train_batch_size=16, remove_unused_columns=False
)
data = tokenized(tweets(400)).remove_columns(["text", "token_type_ids"])
trainer = Trainer(Wrapped(), args, train_dataset=data, processing_class=tokenizer())
trainer.train()
