"""Classes named by a list that is too short."""

import numpy as np
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}

names = ["bad", "good"]


def compute_metrics(given):
    predicted = [names[i] for i in given.predictions.argmax(-1)]
    true = [names[i] for i in given.label_ids]  # expect: crashing-metrics
    return {"accuracy": float(np.mean([p == t for p, t in zip(predicted, true)]))}


trainer = Trainer(
    model,
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)
trainer.train()
