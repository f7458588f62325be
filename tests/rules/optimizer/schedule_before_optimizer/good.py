"""A training step that looks at the schedule."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Mine(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        self.rate = self.lr_scheduler.get_last_lr()[0]
        return super().training_step(model, inputs, num_items_in_batch)


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, lr_scheduler_type="constant")
Mine(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
