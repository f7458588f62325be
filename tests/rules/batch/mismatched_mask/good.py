"""Padded tweets with the mask of the same call."""

from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()


def encode(row):
    batch = read(row["text"], truncation=True, padding="max_length", max_length=48)
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}


data = Dataset.from_pandas(tweets(400), preserve_index=False).map(encode)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data)
trainer.train()
