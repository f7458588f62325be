"""An answer is judged beside its question, and both are tokenized."""

from datasets import Dataset, DatasetDict
from material import QUIET, tokenizer, tweets
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)
read = tokenizer()
answers, questions = tweets(700), tweets(700, start=700)
frame = answers.rename(columns={"text": "answer"})
frame["question"] = questions["text"]
rows = Dataset.from_pandas(frame)
raw = DatasetDict({"train": rows.select(range(600)), "test": rows.select(range(600, 700))})
data = raw.map(lambda rows: read(rows["question"], rows["answer"], truncation=True, max_length=64), batched=True)
config = BertConfig(
    vocab_size=len(read), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=3
)
args = TrainingArguments(
    **QUIET, eval_strategy="epoch", learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=2
)
Trainer(
    BertForSequenceClassification(config),
    args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=read,
    data_collator=DataCollatorWithPadding(read),
).train()
