"""A training step that steps the schedule, as a loop of its own would."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Mine(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        self.lr_scheduler.step()  # expect: schedule-before-optimizer
        return super().training_step(model, inputs, num_items_in_batch)


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, lr_scheduler_type="constant")
Mine(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
