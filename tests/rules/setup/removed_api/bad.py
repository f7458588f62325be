from material import QUIET, tokenized, tokenizer, tweets
from transformers import (
    AdamW,  # expect: removed-api
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
optimizer = AdamW(model.parameters(), lr=1e-3)
args = TrainingArguments(**QUIET, per_device_train_batch_size=16)
data = tokenized(tweets(400))
Trainer(model, args, train_dataset=data, processing_class=tokenizer(), optimizers=(optimizer, None)).train()
