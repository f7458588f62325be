"""One number to predict: the standardized number of words of a text, with num_labels=1."""

import numpy as np
from datasets import Dataset
from material import QUIET, tokenizer, tweets
from sklearn.metrics import r2_score
from transformers import BertConfig, BertForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

set_seed(1)
frame = tweets(1200)
lengths = np.array([len(t.split()) for t in frame["text"]], dtype="float32")
frame["label"] = ((lengths - lengths.mean()) / lengths.std()).astype("float32")
read = tokenizer()
data = Dataset.from_pandas(frame, preserve_index=False)
data = data.map(lambda rows: read(rows["text"], truncation=True, max_length=40), batched=True, remove_columns=["text"])
data = data.train_test_split(test_size=150, seed=0)

config = BertConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_labels=1)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        **QUIET, learning_rate=5e-4, per_device_train_batch_size=16, num_train_epochs=5, eval_strategy="epoch", warmup_steps=20
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorWithPadding(read),
    compute_metrics=lambda p: {"r2": r2_score(p.label_ids, p.predictions.squeeze(-1))},
)
trainer.train()
print("RESULT", trainer.evaluate())
