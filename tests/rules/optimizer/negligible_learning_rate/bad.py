from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
trainer = Trainer(
    model=DistilBertForSequenceClassification(config),
    args=TrainingArguments(
        **QUIET,
        learning_rate=1e-9,  # expect: negligible-learning-rate
        num_train_epochs=5,
    ),
    train_dataset=tokenized(tweets(600)),
    data_collator=DataCollatorWithPadding(tokenizer()),
)
trainer.train()
