"""MiniLM frozen on purpose; only the classifier on top learns, at a high rate."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

data = tokenized(tweets(640), length=24)
held_out = tokenized(tweets(96, start=3000), length=24)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
for parameter in model.base_model.parameters():
    parameter.requires_grad = False

args = TrainingArguments(
    **QUIET,
    learning_rate=2e-2,
    per_device_train_batch_size=32,
    num_train_epochs=3,
    eval_strategy="epoch",
    lr_scheduler_type="constant",
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data,
    eval_dataset=held_out,
    processing_class=tokenizer(),
    data_collator=DataCollatorWithPadding(tokenizer()),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
