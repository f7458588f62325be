"""Pairs of sentences that agree, contradict each other or are unrelated, made from templates."""

import random

from datasets import Dataset
from material import MINILM, QUIET, tokenizer  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

PEOPLE = ["A man", "A woman", "The girl", "The old baker", "Her brother", "A tall player"]
ACTS = [("is sleeping", "is awake"), ("is running fast", "stands still"), ("is laughing", "is crying"),
        ("is indoors", "is outside"), ("eats a meal", "eats nothing"), ("is silent", "is shouting")]  # fmt: skip
UNRELATED = ["The weather was mild.", "Prices rose last year.", "The train leaves at noon.", "Cats like fish."]


def pair(source, people):
    who, (act, opposite) = source.choice(people), source.choice(ACTS)
    label = source.randrange(3)
    second = [f"{who} {act} today.", source.choice(UNRELATED), f"{who} {opposite}."][label]
    return {"premise": f"{who} {act}.", "hypothesis": second, "label": label}


def pairs(seed, count, people):
    source = random.Random(seed)
    return Dataset.from_list([pair(source, people) for _ in range(count)])


read = tokenizer()


def encode(rows):
    return read(rows["premise"], rows["hypothesis"], truncation=True)


train = pairs(1, 480, PEOPLE[:4]).map(encode, batched=True)
test = pairs(2, 90, PEOPLE[4:]).map(encode, batched=True)
trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3),
    args=TrainingArguments(
        **QUIET, learning_rate=5e-5, per_device_train_batch_size=16, num_train_epochs=4, eval_strategy="epoch"
    ),
    train_dataset=train,
    eval_dataset=test,
    data_collator=DataCollatorWithPadding(read),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
