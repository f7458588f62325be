from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
frame, held = tweets(600), tweets(150, start=600)


def encoded(rows):
    return Dataset.from_pandas(rows).map(lambda r: read(r["text"], truncation=True, max_length=32), batched=True)


train, test = encoded(frame), encoded(held)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
collate = DataCollatorWithPadding(read)
Trainer(model, args, train_dataset=train, eval_dataset=test, data_collator=collate).train()
