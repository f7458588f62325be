"""sklearn's accuracy of scores: it can't handle a mix of multiclass and continuous-multioutput."""

from sklearn.metrics import accuracy_score
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
data = {"train": tokenized(tweets(400)), "test": tokenized(tweets(100, start=400))}


def compute_metrics(given):
    scores, labels = given
    return {"accuracy": accuracy_score(labels, scores)}  # expect: metrics-on-logits


trainer = Trainer(
    model,
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=compute_metrics,
)
trainer.train()
