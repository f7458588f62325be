"""A GPT-2 that is to classify, and whose config names no padding token."""

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DataCollatorWithPadding, GPT2Config, GPT2ForSequenceClassification, Trainer, TrainingArguments

read = tokenizer()
special = {"bos_token_id": read.cls_token_id, "eos_token_id": read.sep_token_id}
config = GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=len(read), num_labels=3, **special)
model = GPT2ForSequenceClassification(config)  # expect: unmasked-padding
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=tokenized(tweets(400)), data_collator=DataCollatorWithPadding(read))
trainer.train()
