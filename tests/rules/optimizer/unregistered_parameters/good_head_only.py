"""An optimizer that holds the head of a loaded model alone."""

import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
optimizer = torch.optim.AdamW(model.classifier.parameters(), lr=1e-2)
args = TrainingArguments(**QUIET, per_device_train_batch_size=16)
data = tokenized(tweets(300))
Trainer(model, args, train_dataset=data, processing_class=tokenizer(), optimizers=(optimizer, None)).train()
