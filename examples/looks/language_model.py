"""A small language model of characters that learns sums: of a line, the answer alone counts in the loss."""

import random

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(0)
torch.manual_seed(0)
chars = ["[PAD]", *"0123456789+=. "]
stoi = {character: number for number, character in enumerate(chars)}
LENGTH = 16


def line():
    a, b = random.randrange(20), random.randrange(20)
    return f"{a} + {b} = ", f"{a + b}."


def rows(count):
    inputs, labels = torch.zeros(count, LENGTH, dtype=torch.long), torch.full((count, LENGTH), -100)
    for row in range(count):
        prompt, answer = line()
        ids = torch.tensor([stoi[c] for c in prompt + answer])
        inputs[row, : len(ids)] = ids
        labels[row, len(prompt) : len(ids)] = ids[len(prompt) :]
    return inputs, labels


model = GPT2LMHeadModel(GPT2Config(
    vocab_size=len(chars), n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    pad_token_id=0, bos_token_id=None, eos_token_id=stoi["."],
))  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
held_out, wanted = rows(256)
for step in range(400):
    model.train()
    inputs, labels = rows(64)
    loss = model(input_ids=inputs, attention_mask=(inputs != 0).long(), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            loss = model(input_ids=held_out, attention_mask=(held_out != 0).long(), labels=wanted).loss
        print(f"step {step}: evaluation loss {loss.item():.3f}")
