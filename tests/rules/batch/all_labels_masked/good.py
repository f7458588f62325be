"""Questions and answers in one row, with room for both."""

from datasets import Dataset
from material import CLASSES, QUIET, tokenizer, tweets  # slow
from transformers import DataCollatorForSeq2Seq, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

read, limit = tokenizer(), 100


def example(row):
    asked = read("Say whether the following message is negative, neutral or positive, in a word. " + row["text"])["input_ids"]
    answer = read(CLASSES[row["label"]], add_special_tokens=False)["input_ids"]
    return {"input_ids": (asked + answer)[:limit], "labels": ([-100] * len(asked) + answer)[:limit]}


tweeted = Dataset.from_pandas(tweets(400), preserve_index=False)
data = tweeted.map(example, remove_columns=["text", "label"])
model = GPT2LMHeadModel(GPT2Config(vocab_size=30522, n_positions=128, n_embd=64, n_layer=2, n_head=4))
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
trainer = Trainer(model, args, train_dataset=data, data_collator=DataCollatorForSeq2Seq(read))
trainer.train()
