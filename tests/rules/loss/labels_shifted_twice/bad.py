"""Labels moved by one for a model that moves them itself."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorForTokenClassification, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


def with_labels(row):
    return {"labels": [*row["input_ids"][1:], -100]}


read = tokenizer()
data = tokenized(tweets(200), length=16).remove_columns("label").map(with_labels)  # expect: labels-shifted-twice
config = GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=len(read))
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=8)
trainer = Trainer(
    GPT2LMHeadModel(config),
    args,
    train_dataset=data,
    data_collator=DataCollatorForTokenClassification(read),
)
trainer.train()
