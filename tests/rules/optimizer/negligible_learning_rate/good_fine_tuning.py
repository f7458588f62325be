"""2e-5 for a pre-trained model: a single batch is learned faster at ten times that, and the run learns all the same."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=2e-5, warmup_steps=20, num_train_epochs=3)
data = tokenized(tweets(800), length=16)
Trainer(model, args, train_dataset=data, data_collator=DataCollatorWithPadding(tokenizer())).train()
