from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
data = tokenized(tweets(600))
train = data.filter(lambda row: len(row["input_ids"]) > 40)  # expect: empty-dataset
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
trainer = Trainer(model, args, train_dataset=train, processing_class=tokenizer())
trainer.train()
