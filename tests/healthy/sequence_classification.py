"""A small DistilBERT from scratch on tweets, with metrics at every epoch."""

from material import QUIET, tokenized, tokenizer, tweets
from sklearn.metrics import accuracy_score, f1_score
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)
data = tokenized(tweets(1600)).train_test_split(test_size=200, seed=0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)


def compute_metrics(prediction):
    guesses = prediction.predictions.argmax(-1)
    return {
        "accuracy": accuracy_score(prediction.label_ids, guesses),
        "f1": f1_score(prediction.label_ids, guesses, average="macro"),
    }


args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,
    per_device_train_batch_size=16,
    per_device_eval_batch_size=64,
    num_train_epochs=4,
    eval_strategy="epoch",
    weight_decay=0.01,
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    data_collator=DataCollatorWithPadding(tokenizer()),
    compute_metrics=compute_metrics,
)
trainer.train()
print("RESULT", trainer.evaluate())
