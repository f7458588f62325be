"""Class weights from the counts of all classes."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from torch.nn import functional as F
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

frame = tweets(400)
counts = torch.bincount(torch.tensor(frame["label"].tolist()), minlength=3)
weights = counts.sum() / (3 * counts)


class LossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels, weight=weights.to(labels.device))
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = LossTrainer(model, args, train_dataset=tokenized(frame), processing_class=tokenizer())
trainer.train()
