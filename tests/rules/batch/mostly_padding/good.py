"""Tweets padded to the longest of their batch."""

from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()
tweeted = Dataset.from_pandas(tweets(400), preserve_index=False)
data = tweeted.map(lambda r: read(r["text"], truncation=True, max_length=96))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, processing_class=read)
trainer.train()
