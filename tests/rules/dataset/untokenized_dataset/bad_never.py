# slow

from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
read = tokenizer()
train, test = Dataset.from_pandas(tweets(400)), Dataset.from_pandas(tweets(100, start=400))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(**QUIET, eval_strategy="epoch", learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
trainer = Trainer(
    model=model,
    args=args,
    processing_class=read,
    eval_dataset=test,
    train_dataset=train,  # expect: untokenized-dataset
)
trainer.train()
