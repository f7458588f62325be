"""Train a GPT-2 from scratch on Python code, in a loop of one's own on Accelerate that weighs blocks by their words.

python codeparrot_accelerate.py --tiny
accelerate launch codeparrot_accelerate.py --precision bf16 --hub huggingface-course/codeparrot-ds-train --files 600000
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from codeparrot_data import build_model, complete, prepare, read_arguments
from huggingface_hub import HfApi
from torch.utils.data import DataLoader
from transformers import get_scheduler

KEY_WORDS = ("plt", "pd", "sk", "fit", "predict", " plt", " pd", " sk", " fit", " predict")

args = read_arguments(__doc__, out="codeparrot-ds-accelerate", schedule="linear")
accelerator = Accelerator(
    mixed_precision=args.precision,
    gradient_accumulation_steps=args.accumulation,
    log_with=args.report,
    project_dir=args.out,
)
accelerator.init_trackers("codeparrot", config=vars(args))
set_seed(0)
tokenizer, train, valid = prepare(args)

# A block weighs one more for each key word in it, and all blocks together weigh what they would without.
ids_of = {word: tokenizer(word).input_ids for word in KEY_WORDS}
accelerator.print("not one token, so not counted:", [word for word, ids in ids_of.items() if len(ids) > 1])
key_tokens = torch.tensor([ids[0] for ids in ids_of.values() if len(ids) == 1])
window = args.batch * args.accumulation * accelerator.num_processes
train = train.shuffle(seed=0).select(range(len(train) // window * window)).with_format("torch")  # full updates only
weights = 1 + torch.isin(train["input_ids"][:], key_tokens).sum(dim=1)
train = train.add_column("weight", (weights / weights.float().mean()).tolist())
train_loader = DataLoader(train, batch_size=args.batch, shuffle=True)
valid_loader = DataLoader(valid.with_format("torch"), batch_size=args.batch)

# Weight decay is for matrices: biases and norms have one dimension.
model = build_model(args, tokenizer)
accelerator.print(f"{len(train):,} blocks, {len(valid):,} to validate, {model.num_parameters():,} parameters")
decayed = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim < 2]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=args.rate)
# The schedule counts updates, and is stepped once for each: it is not prepared, which would count processes, too.
updates = args.epochs * len(train) // window
schedule = get_scheduler(args.schedule, optimizer, num_warmup_steps=args.warmup, num_training_steps=updates)
model, optimizer, train_loader, valid_loader = accelerator.prepare(model, optimizer, train_loader, valid_loader)


def losses_of(ids):
    """The mean loss of each block; a token's label is the token after it."""
    logits = model(ids).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none").mean(dim=1)


def evaluate():
    """The loss over all validation blocks, each counted once, and its perplexity."""
    model.eval()
    with torch.no_grad():
        losses = [accelerator.gather_for_metrics(losses_of(batch["input_ids"])) for batch in valid_loader]
    model.train()
    loss = torch.cat(losses).mean()
    return {"loss/eval": loss.item(), "perplexity": loss.exp().item()}


def save(message):
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(args.out)
        tokenizer.save_pretrained(args.out)
        if args.push:
            HfApi().create_repo(args.push, exist_ok=True)
            HfApi().upload_folder(repo_id=args.push, folder_path=args.out, commit_message=message)


def log(values, step):
    accelerator.print(f"update {step} of {updates}:", {name: round(value, 6) for name, value in values.items()})
    accelerator.log(values, step=step)


log(evaluate(), step=0)
update, seen = 0, []
for _epoch in range(args.epochs):
    for batch in train_loader:
        with accelerator.accumulate(model):
            loss = (losses_of(batch["input_ids"]) * batch["weight"]).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        seen.append(torch.stack([loss.detach(), batch["weight"].mean()]))
        if accelerator.sync_gradients:
            if not accelerator.optimizer_step_was_skipped:
                schedule.step()
            update += 1
            if update % args.log_every == 0:
                loss, weight = accelerator.reduce(torch.stack(seen).sum(dim=0)).tolist()
                log({"loss/train": loss / weight, "learning_rate": schedule.get_last_lr()[0]}, update)
                seen = []
            if update % args.evaluate_every == 0:
                log(evaluate(), update)
                save(f"Update {update}")

log(evaluate(), update)
save("End of training")
accelerator.end_training()
if accelerator.is_main_process:
    complete(accelerator.unwrap_model(model), tokenizer)
