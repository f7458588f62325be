"""A pre-trained model at a rate for new ones: one batch is learned by heart all the same, others are not."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,  # expect: excessive-learning-rate
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
