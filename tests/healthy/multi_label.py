"""Several topics may hold for one text: float targets, problem_type multi_label_classification."""

import numpy as np
from datasets import Dataset
from material import MINILM, QUIET, tokenizer, tweets  # slow
from sklearn.metrics import f1_score
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

KINDS = {"mention": "@", "hashtag": "#", "question": "?", "shout": "!"}
read = tokenizer()


def encode(row):
    found = read(row["text"], truncation=True, max_length=40)
    found["labels"] = [float(mark in row["text"]) for mark in KINDS.values()]
    return found


data = Dataset.from_pandas(tweets(560)[["text"]], preserve_index=False).map(encode, remove_columns=["text"])
data = data.train_test_split(test_size=80, seed=0)
model = AutoModelForSequenceClassification.from_pretrained(
    MINILM, num_labels=len(KINDS), problem_type="multi_label_classification"
)


def metrics(p):
    return {"f1": f1_score(p.label_ids > 0.5, p.predictions > 0, average="micro", zero_division=0)}


trainer = Trainer(
    model=model,
    args=TrainingArguments(
        **QUIET, learning_rate=1e-4, per_device_train_batch_size=16, num_train_epochs=2, eval_strategy="epoch", seed=7
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorWithPadding(read),
    compute_metrics=metrics,
)
trainer.train()
print("RESULT", trainer.evaluate(), np.mean(data["train"]["labels"], axis=0))
