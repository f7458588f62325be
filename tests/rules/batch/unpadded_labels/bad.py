"""One tag a token, and a collator that pads the tokens but not the tags."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import (
    DataCollatorWithPadding, DistilBertConfig, DistilBertForTokenClassification, Trainer, TrainingArguments,
)

FIRST_RARE_WORD = 3000


def tag(row):
    return {"labels": [int(token >= FIRST_RARE_WORD) for token in row["input_ids"]]}


data = tokenized(tweets(400)).map(tag, remove_columns=["text", "label"])
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=2)
model = DistilBertForTokenClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
collator = DataCollatorWithPadding(tokenizer())  # expect: unpadded-labels
trainer = Trainer(model, args, train_dataset=data, data_collator=collator)
trainer.train()
