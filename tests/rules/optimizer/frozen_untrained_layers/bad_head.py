"""A loaded model of which all but one inner layer is frozen, the fresh head too."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
for name, parameter in model.named_parameters():
    parameter.requires_grad = "layer.2." in name  # expect: frozen-untrained-layers
args = TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=8)
Trainer(model, args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
