"""A Trainer whose compute_loss returns the loss of each row."""

import torch.nn.functional as F
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, inputs["labels"], reduction="none")  # expect: unreduced-loss
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Mine(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
