# topic classifier, three splits (train / validation / test)
import random
from collections import Counter

from datasets import Dataset, DatasetDict
from transformers import (RobertaConfig, RobertaForSequenceClassification, Trainer, TrainingArguments, set_seed)

set_seed(21)
random.seed(21)

TOPICS = {
    0: "goal match team league coach player striker".split(),
    1: "bank market stock profit shares rates euro".split(),
    2: "virus doctor clinic vaccine nurse patient dose".split(),
}
COMMON = "on the in of new after says today with big week first over more".split()


def document():
    label = random.choice([0, 1, 2])
    words = random.choices(COMMON, k=8) + random.choices(TOPICS[label], k=3)
    words += random.choices(TOPICS[random.choice([0, 1, 2])], k=1)
    random.shuffle(words)
    return {"text": " ".join(words), "label": label}


splits = DatasetDict({
    "train": Dataset.from_list([document() for _ in range(1200)]),
    "validation": Dataset.from_list([document() for _ in range(300)]),
    "test": Dataset.from_list([document() for _ in range(300)]),
})

counts = Counter(w for t in splits["train"]["text"] for w in t.split())
vocab = {w: i + 3 for i, (w, _) in enumerate(counts.most_common())}


def preprocess(batch):
    return {"input_ids": [[0] + [vocab.get(w, 2) for w in t.split()] for t in batch["text"]]}


train_ds = splits["train"].map(preprocess, batched=True, remove_columns=["text"])
val_ds = splits["validation"].map(preprocess, batched=True, remove_columns=["text"])

config = RobertaConfig(vocab_size=len(vocab) + 3, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                       intermediate_size=64, max_position_embeddings=40, num_labels=3, pad_token_id=1)
model = RobertaForSequenceClassification(config)


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="out_topics", learning_rate=2e-3, num_train_epochs=4,
        per_device_train_batch_size=32, per_device_eval_batch_size=64,
        lr_scheduler_type="cosine", warmup_steps=10,
        eval_strategy="epoch", logging_strategy="epoch", save_strategy="no",
        report_to="none", disable_tqdm=True, use_cpu=True),
    train_dataset=train_ds,
    eval_dataset=val_ds,
    compute_metrics=accuracy,
)
trainer.train()
print("validation:", trainer.evaluate())
test_metrics = trainer.evaluate(splits["test"], metric_key_prefix="test")
print("test:", test_metrics)
