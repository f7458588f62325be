"""A dictionary of evaluation sets: short and long tweets apart."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

set_seed(0)
data, held_out = tokenized(tweets(640), length=32), tokenized(tweets(160, start=4000), length=32)
apart = {
    "short": held_out.filter(lambda row: len(row["input_ids"]) <= 20),
    "long": held_out.filter(lambda row: len(row["input_ids"]) > 20),
}
trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args=TrainingArguments(
        **QUIET, learning_rate=1e-4, per_device_train_batch_size=16, num_train_epochs=2, eval_strategy="steps", eval_steps=30
    ),
    train_dataset=data,
    eval_dataset=apart,
    processing_class=tokenizer(),
    data_collator=DataCollatorWithPadding(tokenizer()),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
