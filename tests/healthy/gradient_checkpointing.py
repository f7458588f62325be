"""Activations recomputed in the backward pass to save memory."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

set_seed(0)
data = tokenized(tweets(320), length=24)
trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args=TrainingArguments(
        **QUIET,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        learning_rate=5e-5,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        logging_steps=10,
    ),
    train_dataset=data,
    data_collator=DataCollatorWithPadding(tokenizer()),
)
trainer.train()
print("RESULT", [round(h["loss"], 3) for h in trainer.state.log_history if "loss" in h])
