"""A model that returns its hidden states, and metrics that take the first output."""

import numpy as np
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, output_hidden_states=True)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}


def compute_metrics(given):
    scores = given.predictions[0]
    return {"accuracy": float((np.argmax(scores, axis=-1) == given.label_ids).mean())}


trainer = Trainer(
    model,
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)
trainer.train()
