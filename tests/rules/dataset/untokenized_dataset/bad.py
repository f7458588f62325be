from datasets import Dataset, DatasetDict
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
raw = DatasetDict({"train": Dataset.from_pandas(tweets(400)), "test": Dataset.from_pandas(tweets(100, start=400))})
tokenized = raw.map(lambda rows: read(rows["text"], truncation=True, max_length=32), batched=True)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, eval_strategy="epoch", learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(
    DistilBertForSequenceClassification(config),
    args,
    train_dataset=raw["train"],  # expect: untokenized-dataset
    eval_dataset=raw["test"],
    processing_class=read,
)
trainer.train()
