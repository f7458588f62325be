"""Raw text reaches the collator, which tokenizes it: the data set's columns must not be dropped."""

import torch
from datasets import Dataset
from material import MINILM, QUIET, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()


def collate(rows):
    batch = read([r["text"] for r in rows], padding=True, truncation=True, max_length=24, return_tensors="pt")
    batch["labels"] = torch.tensor([r["label"] for r in rows])
    return batch


data = Dataset.from_pandas(tweets(576), preserve_index=False).train_test_split(test_size=96, seed=0)
trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args=TrainingArguments(
        **QUIET, remove_unused_columns=False, learning_rate=5e-5, per_device_train_batch_size=16, num_train_epochs=2,
        eval_strategy="epoch",
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=collate,
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
