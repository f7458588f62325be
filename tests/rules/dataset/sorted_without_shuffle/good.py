from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
data = tokenized(tweets(600).sort_values("label"))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
args = TrainingArguments(
    **QUIET,
    learning_rate=1e-3,
)
model = DistilBertForSequenceClassification(config)
Trainer(model, args, train_dataset=data, data_collator=DataCollatorWithPadding(tokenizer())).train()
