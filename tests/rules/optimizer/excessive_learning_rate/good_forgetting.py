"""A pre-trained model at a rate for such models."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
args = TrainingArguments(
    **QUIET,
    learning_rate=5e-5,
    per_device_train_batch_size=8,
    lr_scheduler_type="constant",
)
trainer = Trainer(
    AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args,
    train_dataset=tokenized(tweets(400), length=16),
    data_collator=DataCollatorWithPadding(tokenizer()),
)
trainer.train()
