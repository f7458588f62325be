"""Class labels as floats, which a Hugging Face classifier takes for several labels per row."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
frame = tweets(400)
frame["label"] = frame["label"].astype(float)
data = tokenized(frame)  # expect: wrong-target-dtype
trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer())
trainer.train()
