"""The classes stand in a column that the model does not know."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

data = tokenized(tweets(400).rename(columns={"label": "sentiment"}))  # expect: missing-labels
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer())
trainer.train()
