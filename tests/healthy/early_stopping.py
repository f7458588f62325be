"""Early stopping, the best weights loaded at the end, and a callback of the script's own."""

import tempfile

from material import tokenized, tokenizer, tweets
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class Curve(TrainerCallback):
    def __init__(self):
        self.losses = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            self.losses.append(logs["loss"])


set_seed(0)
data = tokenized(tweets(1200), length=24).train_test_split(test_size=200, seed=0)
model = DistilBertForSequenceClassification(DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3))
args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    report_to="none",
    use_cpu=True,
    learning_rate=1e-3,
    per_device_train_batch_size=16,
    num_train_epochs=6,
    eval_strategy="epoch",
    save_strategy="epoch",
    logging_strategy="epoch",
    save_total_limit=1,
    load_best_model_at_end=True,
    metric_for_best_model="accuracy",
    greater_is_better=True,
)
curve = Curve()
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
    callbacks=[EarlyStoppingCallback(early_stopping_patience=2), curve],
)
trainer.train()
print("RESULT", trainer.evaluate(), curve.losses)
