"""Tags for words: is it a mention, a hashtag, capitalized, or plain? Sub-words after the first are ignored."""

import numpy as np
from datasets import Dataset
from material import MINILM, QUIET, tokenizer, tweets  # slow
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

TAGS = ["O", "B-MENTION", "B-HASH", "B-LINK"]
read = tokenizer()


def tag(word):
    return 1 if word.startswith("@") else 2 if word.startswith("#") else 3 if word.startswith("http") else 0


def encode(row):
    words = row["text"].split()
    found = read(words, is_split_into_words=True, truncation=True, max_length=48)
    previous, labels = None, []
    for index in found.word_ids():
        labels.append(-100 if index is None or index == previous else tag(words[index]))
        previous = index
    return {**found, "labels": labels}


data = Dataset.from_pandas(tweets(560)[["text"]], preserve_index=False).map(encode, remove_columns=["text"])
data = data.train_test_split(test_size=80, seed=0)


def compute_metrics(p):
    guesses, live = p.predictions.argmax(-1), p.label_ids != -100
    return {"accuracy": float((guesses == p.label_ids)[live].mean()), "tags": float(np.mean(guesses[live] > 0))}


trainer = Trainer(
    model=AutoModelForTokenClassification.from_pretrained(MINILM, num_labels=len(TAGS)),
    args=TrainingArguments(
        **QUIET, learning_rate=5e-5, per_device_train_batch_size=16, num_train_epochs=2, eval_strategy="epoch"
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorForTokenClassification(read),
    compute_metrics=compute_metrics,
)
trainer.train()
print("RESULT", trainer.evaluate())
