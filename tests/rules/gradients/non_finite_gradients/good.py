"""A penalty on the root of the distance between neighbors, kept away from zero."""

import torch
import torch.nn.functional as F
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        logits = outputs.logits
        spread = torch.sqrt((logits - logits.flip(0)).pow(2).sum(-1) + 1e-8).mean()
        loss = F.cross_entropy(logits, inputs["labels"]) + 0.01 * spread
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Mine(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
