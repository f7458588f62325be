"""A Trainer whose compute_loss weighs the classes, the way the documentation shows."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
data = tokenized(tweets(1400)).train_test_split(test_size=200, seed=0)
counts = torch.bincount(torch.tensor(data["train"]["label"]), minlength=3).float()
weights = counts.sum() / (3 * counts)


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss_function = nn.CrossEntropyLoss(weight=weights.to(outputs.logits.device))
        loss = loss_function(outputs.logits.view(-1, 3), labels.view(-1))
        return (loss, outputs) if return_outputs else loss


model = DistilBertForSequenceClassification(
    DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
)
trainer = WeightedTrainer(
    model=model,
    args=TrainingArguments(
        **QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=4, eval_strategy="epoch"
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
