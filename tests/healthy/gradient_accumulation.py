"""Four micro-batches an update, and a linear warm-up over a tenth of the updates."""

from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

set_seed(11)
data = tokenized(tweets(512), length=24)
args = TrainingArguments(
    **QUIET,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=4,
    learning_rate=5e-5,
    warmup_steps=0.1,
    num_train_epochs=2,
    max_grad_norm=1.0,
    logging_steps=8,
)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
trainer = Trainer(
    model=model, args=args, train_dataset=data, data_collator=DataCollatorWithPadding(tokenizer(), pad_to_multiple_of=8)
)
result = trainer.train()
print("RESULT", [round(h["loss"], 3) for h in trainer.state.log_history if "loss" in h])
