"""A new model at a rate that suits new weights."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,
    per_device_train_batch_size=16,
    num_train_epochs=2,
)
trainer = Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer())
trainer.train()
