"""A label for each token, and a head for whole rows."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorForTokenClassification, DistilBertConfig, Trainer, TrainingArguments
from transformers import DistilBertForSequenceClassification as Model


def tag(row):
    """1 for a token that continues a word."""
    pieces = read.convert_ids_to_tokens(row["input_ids"])
    return {"labels": [int(piece.startswith("##")) for piece in pieces]}


read = tokenizer()
data = tokenized(tweets(300)).map(tag).remove_columns("label")
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=2)
model = Model(config)  # expect: wrong-head
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, data_collator=DataCollatorForTokenClassification(read))
trainer.train()
