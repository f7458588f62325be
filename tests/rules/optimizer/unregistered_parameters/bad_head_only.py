"""A new model, of which the optimizer was given the classifier only."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, per_device_train_batch_size=16, num_train_epochs=3)
optimizer = torch.optim.AdamW(model.classifier.parameters(), lr=1e-3)  # expect: unregistered-parameters
trainer = Trainer(
    model,
    args,
    train_dataset=tokenized(tweets(400)),
    processing_class=tokenizer(),
    optimizers=(optimizer, None),
)
trainer.train()
