"""A loaded encoder that is to stay as it is, but for a slip."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
for parameter in model.base_model.parameters():
    parameter.require_grad = False  # expect: ineffective-freeze
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=8)
Trainer(model, args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
