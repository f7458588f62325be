"""An error rate, of which the framework takes the greatest to be the best."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(
    **QUIET | {"save_strategy": "epoch"},
    learning_rate=1e-3,
    per_device_train_batch_size=16,
    eval_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="error_rate",  # expect: wrong-metric-direction
)


def compute_metrics(given):
    return {"error_rate": float((given.predictions.argmax(-1) != given.label_ids).mean())}


data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}
trainer = Trainer(
    model, args, train_dataset=data["train"], eval_dataset=data["test"], processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)  # fmt: skip
trainer.train()
