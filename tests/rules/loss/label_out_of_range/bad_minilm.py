"""Three classes, and a pre-trained MiniLM with two outputs."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=2)  # expect: label-out-of-range
args = TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=16)
data = tokenized(tweets(300))
trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer())
trainer.train()
