"""Metrics that take the scores as they are: the area under the curve, and an accuracy by sklearn."""

from scipy.special import softmax
from sklearn.metrics import accuracy_score, roc_auc_score
import numpy as np
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}


def compute_metrics(given):
    chances = softmax(given.predictions, axis=1)
    area = roc_auc_score(given.label_ids, chances, multi_class="ovr", labels=[0, 1, 2])
    return {"auc": area, "accuracy": accuracy_score(given.label_ids, np.argmax(chances, axis=1))}


trainer = Trainer(
    model,
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)
trainer.train()
