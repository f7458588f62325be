"""Two files, whose classes are numbered in one order."""

# slow

from datasets import ClassLabel, Dataset
from material import CLASSES, QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()


def encoded(frame):
    written = [CLASSES[label] for label in frame["label"]]
    names = sorted(CLASSES)
    data = Dataset.from_dict({"text": frame["text"].tolist(), "label": [names.index(w) for w in written]})
    data = data.cast_column("label", ClassLabel(names=names))
    return data.map(lambda rows: read(rows["text"], truncation=True, max_length=32), batched=True)


train, held = encoded(tweets(400)), encoded(tweets(101, start=401))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")
trainer = Trainer(model, args, train_dataset=train, eval_dataset=held, processing_class=read)
trainer.train()
