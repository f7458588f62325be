# slow

from datasets import Dataset
from material import QUIET, tweets
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import DistilBertConfig, DistilBertForSequenceClassification, PreTrainedTokenizerFast
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
counts = tweets(400)["text"].str.findall(r"\w+|[^\w\s]+").explode().value_counts()
words = ["[PAD]", "[UNK]", *counts.index[:2000]]
inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
inner.pre_tokenizer = pre_tokenizers.Whitespace()
read = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", model_max_length=32)
raw = Dataset.from_pandas(tweets(400))
data = raw.map(lambda rows: read(rows["text"], truncation=True), batched=True)
config = DistilBertConfig(vocab_size=len(words), dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
Trainer(model, args, train_dataset=data, processing_class=read).train()
