# Train a really small GPT-2 from scratch on made-up recipe lines
import random

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(42)

WHO = ["anna", "bert", "carla", "dirk", "eva"]
VERB = {"anna": "bakes", "bert": "fries", "carla": "boils", "dirk": "grills", "eva": "cuts"}
FOOD = {"bakes": ["bread", "cake"], "fries": ["eggs", "fish"], "boils": ["rice", "pasta"],
        "grills": ["steak", "corn"], "cuts": ["onions", "leeks"]}
WHEN = {"bread": "at dawn", "cake": "on sunday", "eggs": "at nine", "fish": "on friday",
        "rice": "at noon", "pasta": "on monday", "steak": "at night", "corn": "in july",
        "onions": "in tears", "leeks": "in march"}


def sentence():
    who = random.choice(WHO)
    verb = VERB[who]
    food = random.choice(FOOD[verb])
    return f"{who} {verb} {food} {WHEN[food]} ."


lines = [sentence() for _ in range(2400)]
words = sorted({w for l in lines for w in l.split()})
tok = {w: i + 2 for i, w in enumerate(words)}
tok["<pad>"], tok["<bos>"] = 0, 1
inv = {i: w for w, i in tok.items()}


class LineDataset(Dataset):
    def __init__(self, lines):
        self.rows = [[1] + [tok[w] for w in l.split()] for l in lines]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = torch.tensor(self.rows[i])
        return {"input_ids": ids[:-1], "labels": ids[1:]}


train_set, eval_set = LineDataset(lines[:2000]), LineDataset(lines[2000:])

config = GPT2Config(vocab_size=len(tok), n_positions=32, n_embd=48, n_layer=2, n_head=4,
                    bos_token_id=1, eos_token_id=tok["."], pad_token_id=0)
model = GPT2LMHeadModel(config)

args = TrainingArguments(
    output_dir="out_char_gpt",
    num_train_epochs=4,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=64,
    learning_rate=3e-3,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=50,
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=eval_set)
trainer.train()
print(trainer.evaluate())

# let it write something
model.eval()
valid = set(l.replace(" .", "") for l in lines)
ok = 0
for n in range(50):
    start = torch.tensor([[1, tok[WHO[n % 5]]]])
    out = model.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=8,
                         do_sample=True, top_k=5)
    text = " ".join(inv[i] for i in out[0].tolist()[1:]).split(" .")[0]
    ok += text in valid
    if n < 5:
        print("   ", text)
print(f"well-formed continuations for unseen draws: {ok}/50")
