"""A tokenizer trained on the tweets, and a model that starts from nothing."""

from datasets import Dataset
from material import QUIET, tweets
from tokenizers import BertWordPieceTokenizer
from transformers import (
    BertTokenizerFast, DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments,
)

frame = tweets(400)
trained = BertWordPieceTokenizer()
trained.train_from_iterator(tweets(3000)["text"], vocab_size=6000, show_progress=False)
reader = BertTokenizerFast(tokenizer_object=trained._tokenizer)
data = Dataset.from_pandas(frame, preserve_index=False)
data = data.map(lambda rows: reader(rows["text"], truncation=True, max_length=24), batched=True)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, processing_class=reader)
trainer.train()
