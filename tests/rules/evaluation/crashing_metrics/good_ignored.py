"""Words for the labels that are not -100."""

# slow

import numpy as np
import torch
from material import QUIET
from transformers import DistilBertConfig, DistilBertForTokenClassification, Trainer, TrainingArguments

names = {0: "O", 1: "B", 2: "I"}


def compute_metrics(given):
    predicted = given.predictions.argmax(-1)
    live = given.label_ids != -100
    true = [names[label] for label in given.label_ids[live]]
    said = [names[label] for label in predicted[live]]
    return {"accuracy": float(np.mean(np.array(true) == np.array(said)))}


random = torch.Generator().manual_seed(0)
ids = torch.randint(1, 99, (300, 12), generator=random)
labels = torch.where(torch.arange(12) == 0, -100, ids % 3)
rows = [{"input_ids": a, "labels": b} for a, b in zip(ids, labels)]
config = DistilBertConfig(vocab_size=100, dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
model = DistilBertForTokenClassification(config)
Trainer(model, args, train_dataset=rows[:200], eval_dataset=rows[200:], compute_metrics=compute_metrics).train()
