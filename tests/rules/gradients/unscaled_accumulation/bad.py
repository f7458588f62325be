"""A loss of its own, a mean over each of four micro-batches, which nothing divides by four."""

import torch.nn.functional as F
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels)  # expect: unscaled-accumulation
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(
    **QUIET, optim="sgd", learning_rate=0.02, per_device_train_batch_size=8, gradient_accumulation_steps=4,
    num_train_epochs=3
)
Mine(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
