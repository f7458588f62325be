"""The evaluation set holds a class that the training set lacks and the model has no output for."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=2)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
frame = tweets(600)
data = tokenized(frame[frame["label"] < 2])
held_out = tokenized(tweets(100, start=600))  # expect: label-out-of-range
trainer = Trainer(model, args, train_dataset=data, eval_dataset=held_out, processing_class=tokenizer())
trainer.train()
