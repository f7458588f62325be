"""Train a tiny GPT-2 on standard library source, character by character."""
import os
import sysconfig
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

SEED = 0
BLOCK = 40
set_seed(SEED)


def read(names):
    std = sysconfig.get_path("stdlib")
    return "".join(open(os.path.join(std, n), encoding="utf-8").read() for n in names)


train_text = read(["textwrap.py", "shlex.py", "queue.py", "heapq.py", "bisect.py", "csv.py"])
valid_text = read(["sched.py", "fnmatch.py"])
chars = sorted(set(train_text))
stoi = {c: i for i, c in enumerate(chars)}


class Chunks(Dataset):
    def __init__(self, text, stride):
        ids = torch.tensor([stoi[c] for c in text if c in stoi])
        self.windows = ids.unfold(0, BLOCK + 1, stride)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        w = self.windows[i]
        return {"input_ids": w[:-1], "labels": w[1:]}


model = GPT2LMHeadModel(GPT2Config(
    vocab_size=len(chars), n_positions=BLOCK, n_embd=64, n_layer=2, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))
args = TrainingArguments(
    output_dir="/tmp/source_lm", max_steps=330, per_device_train_batch_size=16, learning_rate=4e-3,
    lr_scheduler_type="cosine", warmup_steps=20, weight_decay=0.01, logging_steps=66, eval_strategy="steps",
    eval_steps=165, save_strategy="no", report_to=[], disable_tqdm=True, seed=SEED, use_cpu=True)
trainer = Trainer(model=model, args=args, train_dataset=Chunks(train_text, 16), eval_dataset=Chunks(valid_text, BLOCK))
trainer.train()
print("eval loss", round(trainer.evaluate()["eval_loss"], 3))


@torch.no_grad()
def complete(prompt, n=60):
    ids = torch.tensor([[stoi[c] for c in prompt]])
    for _ in range(n):
        nxt = model(input_ids=ids[:, -BLOCK:]).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], 1)
    return "".join(chars[i] for i in ids[0].tolist())


model.eval()
for prompt in ("    def __init__(", "        return self.", "if __name__ == "):
    print(repr(complete(prompt)))

ids = torch.tensor([stoi[c] for c in valid_text if c in stoi])
w = ids.unfold(0, BLOCK + 1, BLOCK)
with torch.no_grad():
    logits = model(input_ids=w[:, :-1]).logits
print(f"next character accuracy on held-out files {(logits.argmax(-1) == w[:, 1:]).float().mean():.3f}")
