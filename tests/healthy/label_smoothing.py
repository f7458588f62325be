"""Label smoothing of 0.1: the loss has a floor well above zero."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

set_seed(0)
data, held_out = tokenized(tweets(480), length=24), tokenized(tweets(96, start=4000), length=24)
trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args=TrainingArguments(
        **QUIET,
        label_smoothing_factor=0.1,
        learning_rate=5e-5,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        eval_strategy="epoch",
        lr_scheduler_type="cosine",
    ),
    train_dataset=data,
    eval_dataset=held_out,
    data_collator=DataCollatorWithPadding(tokenizer()),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
