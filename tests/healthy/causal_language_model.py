"""A small GPT-2 from scratch over grouped text, with a byte-level tokenizer trained on the spot."""

import math
from itertools import chain

from datasets import Dataset
from material import QUIET, tweets
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

set_seed(42)
texts = tweets(3000)["text"].tolist()
trained = ByteLevelBPETokenizer()
trained.train_from_iterator(texts, vocab_size=1000, special_tokens=["<|endoftext|>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, eos_token="<|endoftext|>", bos_token="<|endoftext|>")
tokenizer.pad_token = tokenizer.eos_token

BLOCK = 64


def group(rows):
    joined = list(chain.from_iterable(ids + [tokenizer.eos_token_id] for ids in rows["input_ids"]))
    total = len(joined) // BLOCK * BLOCK
    blocks = [joined[i : i + BLOCK] for i in range(0, total, BLOCK)]
    return {"input_ids": blocks, "attention_mask": [[1] * BLOCK for _ in blocks], "labels": [b.copy() for b in blocks]}


raw = Dataset.from_dict({"text": texts})
data = raw.map(lambda r: tokenizer(r["text"]), batched=True, remove_columns=["text"])
data = data.map(group, batched=True, batch_size=3000, remove_columns=data.column_names).train_test_split(test_size=0.1, seed=1)

config = GPT2Config(vocab_size=len(tokenizer), n_positions=BLOCK, n_embd=96, n_layer=2, n_head=4,
                    bos_token_id=0, eos_token_id=0)
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=TrainingArguments(**QUIET, learning_rate=2e-3, per_device_train_batch_size=16, num_train_epochs=3,
                           eval_strategy="epoch", lr_scheduler_type="cosine", warmup_steps=10, weight_decay=0.1),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=default_data_collator,
)
trainer.train()
print("RESULT", math.exp(trainer.evaluate()["eval_loss"]))
