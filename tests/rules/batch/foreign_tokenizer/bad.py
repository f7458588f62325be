"""A tokenizer trained on the tweets, and a pre-trained model that learned other words under the same ids."""

from datasets import Dataset
from material import MINILM, QUIET, tweets
from tokenizers import BertWordPieceTokenizer
from transformers import AutoModelForSequenceClassification, BertTokenizerFast, Trainer, TrainingArguments

frame = tweets(400)
trained = BertWordPieceTokenizer()
trained.train_from_iterator(tweets(3000)["text"], vocab_size=6000, show_progress=False)
reader = BertTokenizerFast(tokenizer_object=trained._tokenizer)  # expect: foreign-tokenizer
data = Dataset.from_pandas(frame, preserve_index=False)
data = data.map(lambda rows: reader(rows["text"], truncation=True, max_length=24), batched=True)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3, num_hidden_layers=2)
args = TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, processing_class=reader)
trainer.train()
