from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
train, test = tokenized(tweets(400)), tokenized(tweets(100, start=400))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(
    **QUIET,
    evaluation_strategy="epoch",  # expect: renamed-argument
    overwrite_output_dir=True,
    learning_rate=1e-3,
    per_device_train_batch_size=16,
)
trainer = Trainer(
    DistilBertForSequenceClassification(config),
    args,
    train_dataset=train,
    eval_dataset=test,
    tokenizer=tokenizer(),
)
trainer.train()
