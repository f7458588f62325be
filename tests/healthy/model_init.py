"""The Trainer builds its model itself, from a function, as hyper-parameter searches want it."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

data = tokenized(tweets(2600), length=24).train_test_split(test_size=200, seed=0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, seq_classif_dropout=0.1)


def model_init():
    return DistilBertForSequenceClassification(config)


trainer = Trainer(
    model_init=model_init,
    args=TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=4, eval_strategy="epoch"),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
)
trainer.train()
print("RESULT", trainer.evaluate())
