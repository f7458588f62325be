"""The last loss is kept under a name of its own."""

from material import QUIET, tokenized, tokenizer, tweets
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class LossTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.loss(outputs.logits, labels)
        self.last_loss = loss.detach()
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = LossTrainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer())
trainer.train()
