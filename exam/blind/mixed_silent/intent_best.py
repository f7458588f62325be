import random
import shutil

import numpy as np
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score, log_loss
from transformers import (BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer,
                          TrainingArguments, set_seed)

set_seed(99)
OUT = "out_intent"
shutil.rmtree(OUT, ignore_errors=True)

INTENTS = {
    "weather": "rain sun cloud forecast umbrella storm degrees".split(),
    "music": "song play album band volume singer track".split(),
    "alarm": "wake alarm clock morning snooze seven remind".split(),
    "food": "pizza order menu table dinner sushi hungry".split(),
}
NAMES = list(INTENTS)
FILL = "please can you the me a tell what is for now my some would like".split()


def utterance(noise):
    y = random.randrange(4)
    words = random.choices(FILL, k=7) + random.choices(INTENTS[NAMES[y]], k=2)
    other = random.choice(NAMES)
    words += random.choices(INTENTS[other], k=1)
    random.shuffle(words)
    if random.random() < noise:
        y = random.randrange(4)
    return {"text": " ".join(words), "label": y}


train = Dataset.from_list([utterance(0.10) for _ in range(900)])
valid = Dataset.from_list([utterance(0.10) for _ in range(300)])
test = Dataset.from_list([utterance(0.10) for _ in range(400)])
vocab = {w: i + 1 for i, w in enumerate(sorted(set(FILL) | {w for v in INTENTS.values() for w in v}))}


def tokenize(row):
    return {"input_ids": [vocab[w] for w in row["text"].split()]}


train, valid, test = (d.map(tokenize, remove_columns=["text"]) for d in (train, valid, test))

model = BertForSequenceClassification(BertConfig(
    vocab_size=len(vocab) + 1, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=96, max_position_embeddings=32, num_labels=4))


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = logits.argmax(-1)
    return {"accuracy": accuracy_score(labels, preds), "f1": f1_score(labels, preds, average="macro")}


args = TrainingArguments(
    output_dir=OUT,
    learning_rate=1e-3,
    num_train_epochs=7,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=2,
    load_best_model_at_end=True,
    metric_for_best_model="eval_loss",
    greater_is_better=True,
    logging_strategy="epoch",
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
    seed=99,
)
trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid,
                  compute_metrics=compute_metrics)
trainer.train()
print("kept checkpoint:", trainer.state.best_model_checkpoint)

pred = trainer.predict(test, metric_key_prefix="test")
print({k: round(v, 4) for k, v in pred.metrics.items()})
trainer.save_model(OUT + "/final")
