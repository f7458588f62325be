"""All but the head of a model built from a configuration is frozen."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
for name, parameter in model.named_parameters():
    if not name.startswith("classifier"):
        parameter.requires_grad = False  # expect: frozen-untrained-layers
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
