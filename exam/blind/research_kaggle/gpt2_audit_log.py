"""Character GPT-2 (from scratch, tiny) on audit-log lines with the HF Trainer.

After training, the model completes "user=... action=... code=" prompts.
"""
import itertools
import random

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

USERS = ["ana", "bob", "cyd", "dee", "eli", "fay"]
ACTIONS = ["login", "read", "write", "purge", "share"]
HOSTS = ["h1", "h2", "h3", "h4"]
LINE = 40


def build_lines(n, seed):
    rnd = random.Random(seed)
    table_rnd = random.Random(99)
    code = {k: f"{table_rnd.randint(10, 99)}" for k in itertools.product(USERS, ACTIONS)}
    lines = []
    for _ in range(n):
        u, a = rnd.choice(USERS), rnd.choice(ACTIONS)
        lines.append(f"{rnd.choice(HOSTS)} user={u} action={a} code={code[(u, a)]}\n")
    return lines, code


class CharTokenizer:
    def __init__(self, text):
        self.chars = sorted(set(text))
        self.stoi = {c: i + 1 for i, c in enumerate(self.chars)}
        self.pad_id = 0

    def __len__(self):
        return len(self.chars) + 1

    def encode(self, s):
        return [self.stoi[c] for c in s]

    def decode(self, ids):
        return "".join(self.chars[i - 1] for i in ids if i > 0)


class LineDataset(Dataset):
    def __init__(self, lines, tok):
        self.rows = [tok.encode(x) for x in lines]
        self.pad_id = tok.pad_id

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = self.rows[i]
        pad = LINE - len(ids)
        inputs = torch.tensor(ids + [self.pad_id] * pad)
        labels = torch.tensor(ids + [-100] * pad)
        mask = torch.tensor([1] * len(ids) + [0] * pad)
        return {"input_ids": inputs[:-1], "attention_mask": mask[:-1], "labels": labels[1:]}


@torch.no_grad()
def complete(model, tok, prompt):
    ids = torch.tensor([tok.encode(prompt)])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False, pad_token_id=tok.pad_id)
    return tok.decode(out[0, ids.size(1):].tolist())


def main():
    set_seed(11)
    lines, code = build_lines(1600, seed=5)
    tok = CharTokenizer("".join(lines))
    config = GPT2Config(
        vocab_size=len(tok), n_positions=64, n_embd=64, n_layer=2, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(config)

    args = TrainingArguments(
        output_dir="/tmp/gpt2_audit_log", num_train_epochs=9, per_device_train_batch_size=32,
        learning_rate=4e-3, lr_scheduler_type="cosine", warmup_steps=30, weight_decay=0.01,
        logging_steps=100, save_strategy="no", report_to=[], use_cpu=True,
        dataloader_pin_memory=False, disable_tqdm=True, seed=11)
    trainer = Trainer(model=model, args=args, train_dataset=LineDataset(lines, tok))
    trainer.train()

    model.eval()
    model.config.use_cache = True
    rnd = random.Random(0)
    hits = 0
    for (u, a), c in code.items():
        prompt = f"{rnd.choice(HOSTS)} user={u} action={a} code="
        hits += complete(model, tok, prompt) == c
    print(f"exact completions {hits}/{len(code)} = {hits / len(code):.3f}")


if __name__ == "__main__":
    main()
