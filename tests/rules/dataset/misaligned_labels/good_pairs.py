"""Whether two tweets are of the same class: right labels that no probe of single words can learn."""

import numpy as np
from datasets import Dataset
from material import MINILM, QUIET, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

frame = tweets(800)
other = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
read = tokenizer()
pairs = read(frame["text"].tolist(), other["text"].tolist(), truncation=True, max_length=64)
same = (frame["label"].to_numpy() == other["label"].to_numpy()).astype(int)
train = Dataset.from_dict({"input_ids": pairs["input_ids"], "attention_mask": pairs["attention_mask"], "labels": same})
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=2)
args = TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=train, data_collator=DataCollatorWithPadding(read)).train()
