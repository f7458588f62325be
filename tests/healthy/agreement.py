"""Sentences that are right or wrong by the agreement of subject and verb: no word of them tells which."""

import random

from datasets import Dataset
from material import QUIET, tokenizer
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

NOUNS = [
    "dog",
    "cat",
    "boy",
    "girl",
    "king",
    "bird",
    "horse",
    "doctor",
    "teacher",
    "driver",
    "friend",
    "child",
]
VERBS = ["sleep", "run", "sing", "swim", "laugh", "fall", "wait", "work", "cook", "write", "speak", "dance"]
PLACES = ["near", "behind", "beside", "with", "without", "before"]
WHEN = ["today", "at night", "in the garden", "every morning", "very well", "again", "on monday", "for hours"]


def noun(draw, plural):
    word = draw.choice(NOUNS)
    return ("children" if word == "child" else word + "s") if plural else word


def sentences(rows, seed):
    draw, found = random.Random(seed), []
    for _ in range(rows):
        subject, other, verb = (draw.random() < 0.5 for _ in range(3))
        text = f"the {noun(draw, subject)} {draw.choice(PLACES)} the {noun(draw, other)}"
        text += f" {draw.choice(VERBS)}{'' if verb else 's'} {draw.choice(WHEN)}"
        found.append({"text": text, "label": int(subject == verb)})
    read = tokenizer()
    data = Dataset.from_list(found)
    return data.map(lambda batch: read(batch["text"], truncation=True, max_length=24), batched=True)


set_seed(0)
sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
trainer = Trainer(
    BertForSequenceClassification(BertConfig(**sizes, vocab_size=30522, num_labels=2)),
    TrainingArguments(
        **QUIET,
        learning_rate=1e-3,
        num_train_epochs=20,
        eval_strategy="epoch",
        per_device_train_batch_size=32,
    ),
    train_dataset=sentences(2000, 1),
    eval_dataset=sentences(500, 2),
    processing_class=tokenizer(),
)
trainer.train()
