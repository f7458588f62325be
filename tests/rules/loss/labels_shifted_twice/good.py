"""The input ids as labels: the model moves them itself."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorForTokenClassification, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


def with_labels(row):
    return {"labels": row["input_ids"]}


read = tokenizer()
data = tokenized(tweets(200), length=16).remove_columns("label").map(with_labels)
config = GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=len(read))
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=8)
trainer = Trainer(
    GPT2LMHeadModel(config),
    args,
    train_dataset=data,
    data_collator=DataCollatorForTokenClassification(read),
)
trainer.train()
