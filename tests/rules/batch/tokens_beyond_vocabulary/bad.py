"""A model of 20,000 words, and a tokenizer that knows 30,522."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, vocab_size=20_000)
model = DistilBertForSequenceClassification(config)  # expect: tokens-beyond-vocabulary
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer())
trainer.train()
