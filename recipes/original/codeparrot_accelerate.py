"""The chapter's second script as it was written then, for Accelerate before 0.15: it is checked, not copied.

Its faults are listed in docs/recipes.md. Its one concession is --tiny, which shrinks data, model and step counts.
"""

import sys
from collections import defaultdict

import torch
from accelerate import Accelerator
from huggingface_hub import Repository, get_full_repo_name
from originals import load_files, load_tokenizer
from torch.nn import CrossEntropyLoss
from torch.optim import AdamW
from torch.utils.data.dataloader import DataLoader
from tqdm.auto import tqdm
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

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
    blocks = [ids for length, ids in zip(outputs["length"], outputs["input_ids"]) if length == context_length]
    return {"input_ids": blocks}


tokenized_datasets = raw_datasets.map(tokenize, batched=True, remove_columns=raw_datasets["train"].column_names)

keytoken_ids = []
for keyword in ["plt", "pd", "sk", "fit", "predict", " plt", " pd", " sk", " fit", " predict", "testtest"]:
    ids = tokenizer([keyword]).input_ids[0]
    if len(ids) == 1:
        keytoken_ids.append(ids[0])
    else:
        print(f"Keyword has not single token: {keyword}")


def keytoken_weighted_loss(inputs, logits, keytoken_ids, alpha=1.0):
    shift_labels = inputs[..., 1:].contiguous()
    shift_logits = logits[..., :-1, :].contiguous()
    loss_fct = CrossEntropyLoss(reduce=False)
    loss = loss_fct(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
    loss_per_sample = loss.view(shift_logits.size(0), shift_logits.size(1)).mean(axis=1)
    weights = torch.stack([(inputs == token).float() for token in keytoken_ids]).sum(axis=[0, 2])
    weights = alpha * (1.0 + weights)
    return (loss_per_sample * weights).mean()


batch_size = 4 if tiny else 32
tokenized_datasets.set_format("torch")
train_dataloader = DataLoader(tokenized_datasets["train"], batch_size=batch_size, shuffle=True)
eval_dataloader = DataLoader(tokenized_datasets["valid"], batch_size=batch_size)

weight_decay = 0.1


def get_grouped_params(model, no_decay=("bias", "LayerNorm.weight")):
    params_with_wd, params_without_wd = [], []
    for name, parameter in model.named_parameters():
        if any(part in name for part in no_decay):
            params_without_wd.append(parameter)
        else:
            params_with_wd.append(parameter)
    return [
        {"params": params_with_wd, "weight_decay": weight_decay},
        {"params": params_without_wd, "weight_decay": 0.0},
    ]


def evaluate():
    model.eval()
    losses = []
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(batch["input_ids"], labels=batch["input_ids"])
        losses.append(accelerator.gather(outputs.loss))
    loss = torch.mean(torch.cat(losses))
    try:
        perplexity = torch.exp(loss)
    except OverflowError:
        perplexity = float("inf")
    return loss.item(), perplexity.item()


shape = {"n_layer": 2, "n_head": 2, "n_embd": 96} if tiny else {}
config = GPT2Config(
    vocab_size=len(tokenizer),
    n_ctx=context_length,
    bos_token_id=tokenizer.bos_token_id,
    eos_token_id=tokenizer.eos_token_id,
    **shape,
)
model = GPT2LMHeadModel(config)
optimizer = AdamW(get_grouped_params(model), lr=5e-4)

accelerator = Accelerator(fp16=True)
model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
    model, optimizer, train_dataloader, eval_dataloader
)

num_train_epochs = 1
num_training_steps = num_train_epochs * len(train_dataloader)
lr_scheduler = get_scheduler(
    name="linear", optimizer=optimizer, num_warmup_steps=10 if tiny else 1_000, num_training_steps=num_training_steps
)

model_name = "codeparrot-ds-accelerate"
output_dir = "codeparrot-ds-accelerate"
repo = Repository(output_dir, clone_from=get_full_repo_name(model_name))

evaluate()

gradient_accumulation_steps = 8
eval_steps = 20 if tiny else 5_000
log_steps = 20 if tiny else 100

model.train()
completed_steps = 0
for _epoch in range(num_train_epochs):
    for step, batch in tqdm(enumerate(train_dataloader, start=1), total=num_training_steps):
        logits = model(batch["input_ids"]).logits
        loss = keytoken_weighted_loss(batch["input_ids"], logits, keytoken_ids)
        if step % log_steps == 0:
            accelerator.print(
                {
                    "samples": step * samples_per_step,  # noqa: F821 (the chapter never sets it)
                    "steps": completed_steps,
                    "loss/train": loss.item() * gradient_accumulation_steps,
                }
            )
        loss = loss / gradient_accumulation_steps
        accelerator.backward(loss)
        if step % gradient_accumulation_steps == 0:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            completed_steps += 1
        if (step % (eval_steps * gradient_accumulation_steps)) == 0:
            eval_loss, perplexity = evaluate()
            accelerator.print({"loss/eval": eval_loss, "perplexity": perplexity})
            model.train()
            accelerator.wait_for_everyone()
            unwrapped_model = accelerator.unwrap_model(model)
            unwrapped_model.save_pretrained(output_dir, save_function=accelerator.save)
            if accelerator.is_main_process:
                tokenizer.save_pretrained(output_dir)
                repo.push_to_hub(commit_message=f"Training in progress step {step}", blocking=False)
