"""A language model with a padding token of its own."""

from material import QUIET, tokenized, tokenizer, tweets  # slow
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

read = tokenizer()
read.eos_token = "[SEP]"
data = tokenized(tweets(300)).remove_columns(["text", "label", "token_type_ids"])
model = GPT2LMHeadModel(GPT2Config(vocab_size=30522, n_positions=64, n_embd=64, n_layer=2, n_head=4))
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
collator = DataCollatorForLanguageModeling(read, mlm=False)
trainer = Trainer(model, args, train_dataset=data, data_collator=collator)
trainer.train()
