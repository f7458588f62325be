"""The filter finds the biases, but this model's norms have another name."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import GPT2Config, GPT2ForSequenceClassification, Trainer, TrainingArguments

config = GPT2Config(n_embd=64, n_layer=2, n_head=4, num_labels=3, pad_token_id=0)
model = GPT2ForSequenceClassification(config)
spared = [p for n, p in model.named_parameters() if any(part in n for part in ("bias", "LayerNorm.weight"))]
decayed = [p for n, p in model.named_parameters() if not any(p is q for q in spared)]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": spared, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)  # expect: decayed-norms
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer(), optimizers=(optimizer, None)).train()
