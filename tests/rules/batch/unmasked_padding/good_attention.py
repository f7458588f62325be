"""Padded tweets with their attention mask."""

# slow

from material import QUIET, tokenizer, tweets
from datasets import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()
kept = ["input_ids", "attention_mask", "label"]
tweeted = Dataset.from_pandas(tweets(400), preserve_index=False)
data = tweeted.map(lambda r: read(r["text"], truncation=True, padding="max_length", max_length=48))
data.set_format("torch", columns=kept)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data)
trainer.train()
