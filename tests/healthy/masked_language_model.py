"""A small BERT from scratch on masked words: the collator draws new masks for every batch."""

from datasets import Dataset
from material import QUIET, tokenizer, tweets  # slow
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

read = tokenizer()
data = Dataset.from_pandas(tweets(2000)[["text"]], preserve_index=False)
data = data.map(
    lambda r: read(r["text"], truncation=True, max_length=32, return_special_tokens_mask=True),
    batched=True,
    remove_columns=["text"],
)
data = data.train_test_split(test_size=200, seed=3)
config = BertConfig(vocab_size=len(read), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
model = BertForMaskedLM(config)
args = TrainingArguments(
    **QUIET,
    learning_rate=2e-3,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=32,
    num_train_epochs=3,
    eval_strategy="epoch",
    prediction_loss_only=True,
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorForLanguageModeling(read, mlm_probability=0.15),
)
trainer.train()
print("RESULT", trainer.evaluate())
