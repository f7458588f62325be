from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments

frame = tweets(600)
labels = frame["label"].tolist()
texts = frame["text"].tolist()
read = tokenizer()
train = Dataset.from_dict({**read(texts, truncation=True, max_length=32), "labels": labels})
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=3)
trainer = Trainer(
    DistilBertForSequenceClassification(config),
    args,
    train_dataset=train,
    data_collator=DataCollatorWithPadding(read),
)
trainer.train()
