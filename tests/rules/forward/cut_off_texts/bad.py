"""A language model that is trained on the first tokens of each text: what is longer than a row is cut off."""

import pandas
from datasets import Dataset
from material import QUIET, tokenizer, tweets
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

lines = tweets(600).text.tolist()
documents = Dataset.from_pandas(pandas.DataFrame({"text": [" ".join(lines[i : i + 10]) for i in range(0, 600, 10)]}))
read = tokenizer()


def tokenize(rows):
    return read(rows["text"], truncation=True, max_length=32)  # expect: cut-off-texts


data = documents.map(tokenize, batched=True, remove_columns=documents.column_names).remove_columns("token_type_ids")
model = GPT2LMHeadModel(GPT2Config(vocab_size=30522, n_positions=64, n_embd=16, n_layer=1, n_head=2))
args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
collator = DataCollatorForLanguageModeling(read, mlm=False)
trainer = Trainer(model, args, train_dataset=data, data_collator=collator)
trainer.train()
