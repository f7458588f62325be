"""Padding is the end-of-sequence token, and the texts are blocks of a stream without ends: nothing is masked."""

from material import QUIET, tokenizer, tweets  # slow
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

read = tokenizer()
read.eos_token = read.pad_token = "[SEP]"
stream = read(" ".join(tweets(400)["text"]), add_special_tokens=False)["input_ids"]
data = Dataset.from_dict({"input_ids": [stream[i : i + 32] for i in range(0, len(stream) - 40, 32)]})
model = GPT2LMHeadModel(GPT2Config(vocab_size=30522, n_positions=64, n_embd=64, n_layer=2, n_head=4))
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
collator = DataCollatorForLanguageModeling(read, mlm=False)
trainer = Trainer(model, args, train_dataset=data, data_collator=collator)
trainer.train()
