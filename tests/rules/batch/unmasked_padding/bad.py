"""A language model on padded texts whose labels are a plain copy of the tokens."""

from material import QUIET, tokenizer, tweets  # slow
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

read = tokenizer()


def encode(rows):
    batch = read(rows["text"], truncation=True, padding="max_length", max_length=40)
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": batch["input_ids"]}


tweeted = Dataset.from_pandas(tweets(300), preserve_index=False)
data = tweeted.map(encode, batched=True, remove_columns=["text", "label"])  # expect: unmasked-padding
model = GPT2LMHeadModel(GPT2Config(vocab_size=30522, n_positions=64, n_embd=64, n_layer=2, n_head=4))
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data)
trainer.train()
