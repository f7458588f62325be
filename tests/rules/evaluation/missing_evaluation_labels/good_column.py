"""An evaluation set with further columns."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")

test = tokenized(tweets(100, start=400))
test = test.add_column("sentiment", test["label"])
trainer = Trainer(model, args, train_dataset=tokenized(tweets(400)), eval_dataset=test, processing_class=tokenizer())
trainer.train()
