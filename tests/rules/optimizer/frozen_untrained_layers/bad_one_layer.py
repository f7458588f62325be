"""All but one inner layer of a model built from a configuration is frozen."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
model.requires_grad_(False)  # expect: frozen-untrained-layers
model.distilbert.transformer.layer[0].requires_grad_(True)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
