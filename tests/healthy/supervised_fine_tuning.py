"""TRL's trainer on rows from a file, which its evaluation maps and reads anew."""

import json
import random
import tempfile
from pathlib import Path

from datasets import load_dataset
from material import QUIET
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

draw = random.Random(0)
folder = Path(tempfile.mkdtemp())
words = ["red", "green", "blue", "one", "two", "three", "ball", "cube", "ring", "left", "right", "up", "down"]
texts = {" ".join(draw.choices(words, k=3) * 2) for _ in range(460)}
lines = [json.dumps({"text": text}) + "\n" for text in sorted(texts, key=lambda _: draw.random())]
for name, part in (("train", lines[60:]), ("test", lines[:60])):
    (folder / f"{name}.jsonl").write_text("".join(part))
vocabulary = {word: i for i, word in enumerate(["<end>", "<pad>", "<unk>", *words])}
text = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
text.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=text, eos_token="<end>", pad_token="<pad>", unk_token="<unk>")
size = GPT2Config(
    vocab_size=len(vocabulary), n_layer=2, n_head=2, n_embd=32, n_positions=32, eos_token_id=0, pad_token_id=1
)
files = {name: str(folder / f"{name}.jsonl") for name in ("train", "test")}
rows = load_dataset("json", data_files=files, cache_dir=str(folder / "cache"))
arguments = SFTConfig(
    **QUIET,
    num_train_epochs=3,
    learning_rate=3e-3,
    eval_strategy="epoch",
    max_length=32,
    bf16=False,
    gradient_checkpointing=False,
    per_device_train_batch_size=16,
)
trainer = SFTTrainer(
    GPT2LMHeadModel(size), arguments, train_dataset=rows["train"], eval_dataset=rows["test"], processing_class=tokenizer
)
trainer.train()
