# slow

from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
frame = tweets(400).convert_dtypes()
frame = frame[frame["label"].notna()]
data = Dataset.from_pandas(frame)
data = data.map(lambda rows: read(rows["text"], truncation=True, max_length=32), batched=True)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
trainer = Trainer(model, args, train_dataset=data, data_collator=DataCollatorWithPadding(read))
trainer.train()
