"""A warm-up of a tenth of the run, then a cosine."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, warmup_steps=0.1, lr_scheduler_type="cosine")
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
