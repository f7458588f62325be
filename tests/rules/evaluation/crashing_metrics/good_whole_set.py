"""Metrics that read the whole evaluation set beside the predictions: on a sample of it they fail."""

# slow

import numpy as np
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}

lengths = np.array([len(ids) for ids in data["test"]["input_ids"]])


def compute_metrics(given):
    hits = given.predictions.argmax(-1) == given.label_ids
    return {"accuracy": float(hits.mean()), "accuracy_long": float(hits[lengths > 20].mean())}


trainer = Trainer(
    model,
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)
trainer.train()
