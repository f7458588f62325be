"""All of a loaded model is frozen, then its fresh head released."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
model.requires_grad_(False)
model.classifier.requires_grad_(True)
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
