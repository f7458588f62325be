from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
data = tokenized(tweets(600)).train_test_split(0.2, seed=0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,
    per_device_train_batch_size=16,
)
trainer = Trainer(
    model=DistilBertForSequenceClassification(config),
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorWithPadding(tokenizer()),
)
trainer.train()
