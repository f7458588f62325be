"""A loaded encoder that is to stay as it is, frozen by an attribute that layers do not have."""

# slow
from material import MINILM, QUIET, tokenized, tokenizer, tweets
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
model.base_model.requires_grad = False  # expect: ineffective-freeze
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=8)
Trainer(model, args, train_dataset=tokenized(tweets(300)), processing_class=tokenizer()).train()
