"""Texts and their first words as targets, both padded."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorForSeq2Seq, T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments


def summarise(row):
    return {"labels": [*row["input_ids"][1 : 1 + len(row["input_ids"]) // 6], 102]}


data = tokenized(tweets(300)).map(summarise, remove_columns=["text", "label"])
config = T5Config(vocab_size=30522, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
collator = DataCollatorForSeq2Seq(tokenizer())
trainer = Trainer(model, args, train_dataset=data, data_collator=collator)
trainer.train()
