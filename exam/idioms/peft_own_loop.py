# 1) train a small GPT-2 on counting up, 2) adapt it with LoRA to counting down
import torch
from peft import LoraConfig, get_peft_model
from torch.optim import AdamW
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, LENGTH = 24, 12


def make_batch(step, n=32):
    start = torch.randint(0, VOCAB, (n, 1))
    return (start + step * torch.arange(LENGTH)) % VOCAB


@torch.no_grad()
def next_token_accuracy(model, step):
    model.eval()
    ids = make_batch(step, 200)
    pred = model(input_ids=ids).logits[:, 2:-1].argmax(-1)
    model.train()
    return (pred == ids[:, 3:]).float().mean().item()


base = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0,
                                  embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))
opt = AdamW(base.parameters(), lr=3e-3)
base.train()
for i in range(80):
    ids = make_batch(+1)
    loss = base(input_ids=ids, labels=ids).loss
    loss.backward()
    opt.step()
    opt.zero_grad()
print(f"base: loss {loss.item():.3f} accuracy up {next_token_accuracy(base, 1):.2f} down {next_token_accuracy(base, -1):.2f}")

config = LoraConfig(r=8, lora_alpha=32, target_modules=["c_attn", "c_fc", "c_proj"], lora_dropout=0.0, bias="none",
                    fan_in_fan_out=True, task_type="CAUSAL_LM")
model = get_peft_model(base, config)
model.print_trainable_parameters()
optimizer = AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3, weight_decay=0.0)
model.train()
losses = []
for step in range(150):
    ids = make_batch(-1)
    outputs = model(input_ids=ids, labels=ids)
    outputs.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(outputs.loss.item())
    if step % 30 == 0:
        print(f"lora step {step} loss {losses[-1]:.3f}")
print(f"lora: loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy down {next_token_accuracy(model, -1):.2f}")
