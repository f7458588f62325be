"""Evaluated on rows held out."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
data = tokenized(tweets(500)).train_test_split(0.2, seed=0)
trainer = Trainer(
    model,
    TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch"),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
)
trainer.train()
