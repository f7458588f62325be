import tempfile
import numpy as np
from datasets import Dataset, DatasetDict
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, EarlyStoppingCallback, Trainer,
                          TrainingArguments, default_data_collator, set_seed)

set_seed(42)
rng = np.random.default_rng(42)
TOPICS = 4


def generate(n):
    """Every topic has its own fifteen words, half of every text is common words."""
    labels = rng.integers(0, TOPICS, n)
    own = 4 + labels[:, None] * 15 + rng.integers(0, 15, (n, 5))
    common = 64 + rng.integers(0, 60, (n, 5))
    tokens = rng.permuted(np.concatenate([own, common], 1), axis=1)
    ids = np.concatenate([np.full((n, 1), 1), tokens, np.full((n, 1), 2)], 1)
    return Dataset.from_dict({"input_ids": ids.tolist(), "attention_mask": np.ones_like(ids).tolist(), "labels": labels.tolist()})


ds = DatasetDict(train=generate(1000), validation=generate(200), test=generate(200))


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=1) == labels).mean())}


config = DistilBertConfig(vocab_size=124, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=16, num_labels=TOPICS)
model = DistilBertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as tmp:
    training_args = TrainingArguments(
        output_dir=tmp,
        num_train_epochs=8,
        per_device_train_batch_size=50,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        greater_is_better=True,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=ds["train"], eval_dataset=ds["validation"],
                      data_collator=default_data_collator, compute_metrics=compute_metrics,
                      callbacks=[EarlyStoppingCallback(early_stopping_patience=2)])
    trainer.train()
    test = trainer.predict(ds["test"]).metrics
print(f"epochs run {trainer.state.epoch:.0f}, best {trainer.state.best_metric}, test loss {test['test_loss']:.3f} test accuracy {test['test_accuracy']:.3f}")
