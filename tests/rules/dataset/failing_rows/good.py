import csv
import tempfile
from pathlib import Path

import pandas as pd
from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
path = Path(tempfile.mkdtemp()) / "tweets.csv"
rows = tweets(400)
rows.loc[321, "text"] = " ".join(rows["text"][:30])
rows.to_csv(path, index=False, quoting=csv.QUOTE_ALL)

read = tokenizer()
frame = pd.read_csv(path)
data = Dataset.from_pandas(frame)
data = data.map(lambda rows: read(rows["text"], truncation=True, max_length=128), batched=True)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3, max_position_embeddings=128)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
Trainer(model, args, train_dataset=data, data_collator=DataCollatorWithPadding(read)).train()
