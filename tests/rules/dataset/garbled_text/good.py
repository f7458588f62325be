from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
raw = Dataset.from_pandas(tweets(400))
limit = 32
data = raw.map(lambda rows: read(rows["text"], truncation=True, max_length=limit), batched=True)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
Trainer(model, args, train_dataset=data, processing_class=read).train()
