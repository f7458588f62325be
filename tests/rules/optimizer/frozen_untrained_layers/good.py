"""A loaded encoder is frozen on purpose; one of its layers and the fresh head are trained."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
for name, parameter in model.named_parameters():
    parameter.requires_grad = "classifier" in name or "layer.5." in name
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=8)
Trainer(model, args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
