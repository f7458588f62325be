# slow

from datasets import concatenate_datasets
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
frame = tweets(300)
parts = [tokenized(frame[frame["label"] == label]) for label in (0, 1, 2)]
stream = concatenate_datasets(parts).to_iterable_dataset().shuffle(buffer_size=1000, seed=0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
trainer = Trainer(
    model=DistilBertForSequenceClassification(config),
    args=TrainingArguments(**QUIET, learning_rate=1e-3, max_steps=200),
    train_dataset=stream,
    data_collator=DataCollatorWithPadding(tokenizer()),
)
trainer.train()
