"""The chapter's first script as it was written then, for the Trainer of transformers 4: it is checked, not copied.

Its faults are listed in docs/recipes.md. Its one concession is --tiny, which shrinks data, model and step counts.
"""

import sys
from collections import defaultdict

from originals import load_files, load_tokenizer
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

tiny = "--tiny" in sys.argv
context_length = 128
filters = ["pandas", "sklearn", "matplotlib", "seaborn"]


def filter_files(files):
    kept = defaultdict(list)
    for file in files:
        if any(word in file["content"] for word in filters):
            kept["content"].append(file["content"])
    return kept


raw_datasets = load_files(filter_files, tiny)
tokenizer = load_tokenizer(raw_datasets["train"]["content"], tiny)


def tokenize(batch):
    outputs = tokenizer(
        batch["content"], truncation=True, max_length=context_length, return_overflowing_tokens=True, return_length=True
    )
    blocks = []
    for length, ids in zip(outputs["length"], outputs["input_ids"]):
        if length == context_length:
            blocks.append(ids)
    return {"input_ids": blocks}


tokenized_datasets = raw_datasets.map(tokenize, batched=True, remove_columns=raw_datasets["train"].column_names)

shape = {"n_layer": 2, "n_head": 2, "n_embd": 96} if tiny else {}
config = GPT2Config(
    vocab_size=len(tokenizer),
    n_ctx=context_length,
    bos_token_id=tokenizer.bos_token_id,
    eos_token_id=tokenizer.eos_token_id,
    **shape,
)
model = GPT2LMHeadModel(config)
print(f"GPT-2 size: {sum(p.numel() for p in model.parameters()) / 1000**2:.1f}M parameters")

tokenizer.pad_token = tokenizer.eos_token
data_collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)

steps = 40 if tiny else 5_000
args = TrainingArguments(
    output_dir="codeparrot-ds",
    per_device_train_batch_size=4 if tiny else 32,
    per_device_eval_batch_size=4 if tiny else 32,
    evaluation_strategy="steps",
    eval_steps=steps,
    logging_steps=steps,
    gradient_accumulation_steps=8,
    num_train_epochs=1,
    weight_decay=0.1,
    warmup_steps=10 if tiny else 1_000,
    lr_scheduler_type="cosine",
    learning_rate=5e-4,
    save_steps=steps,
    fp16=True,
    push_to_hub=True,
)
trainer = Trainer(
    model=model,
    tokenizer=tokenizer,
    args=args,
    data_collator=data_collator,
    train_dataset=tokenized_datasets["train"],
    eval_dataset=tokenized_datasets["valid"],
)
trainer.train()
trainer.push_to_hub()
