import random
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import DPOConfig, DPOTrainer

set_seed(7)
polite = ["gladly", "certainly", "please", "thanks", "welcome"]
rude = ["never", "nonsense", "shut", "boring", "whatever"]
topics = ["bread", "music", "rain", "maths", "football", "paint", "trains", "bees"]
words = polite + rude + topics + ["tell", "me", "about", "it", "is", "fine"]
vocab = {w: i for i, w in enumerate(["[PAD]", "[EOS]", "[UNK]"] + words)}
raw = Tokenizer(WordLevel(vocab, unk_token="[UNK]"))
raw.pre_tokenizer = WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]")


def answer(kind, topic):
    return f" {random.choice(kind)} {random.choice(kind)} {topic} is fine"


def make_pairs(n):
    rows = []
    for _ in range(n):
        topic = random.choice(topics)
        good, bad = answer(polite, topic), answer(rude, topic)
        rows.append({"prompt": f"tell me about {topic}", "chosen": good, "rejected": bad})
    return Dataset.from_list(rows)


@torch.no_grad()
def prefers_polite(model, n=100):
    """How often a polite answer is more likely than a rude one."""
    model.eval()
    wins = 0
    for _ in range(n):
        topic, score = random.choice(topics), []
        for kind in (polite, rude):
            ids = tokenizer(f"tell me about {topic}" + answer(kind, topic), return_tensors="pt")["input_ids"]
            logp = model(ids).logits[0, :-1].log_softmax(-1)
            score.append(logp.gather(1, ids[0, 1:, None]).sum().item())
        wins += score[0] > score[1]
    return wins / n


config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                    attn_pdrop=0.0, bos_token_id=1, eos_token_id=1, pad_token_id=0)
model = GPT2LMHeadModel(config)
ref_model = GPT2LMHeadModel(config)
ref_model.load_state_dict(model.state_dict())
print(f"polite preferred before: {prefers_polite(model):.2f}")

with tempfile.TemporaryDirectory() as tmp:
    training_args = DPOConfig(output_dir=tmp, beta=0.1, max_length=32, per_device_train_batch_size=8, max_steps=50, learning_rate=1e-3,
                              logging_steps=10, save_strategy="no", report_to="none", use_cpu=True, bf16=False,
                              gradient_checkpointing=False, disable_tqdm=True)
    trainer = DPOTrainer(model=model, ref_model=ref_model, args=training_args, train_dataset=make_pairs(200), processing_class=tokenizer)
    result = trainer.train()
print(f"mean train loss {result.training_loss:.4f}; polite preferred after: {prefers_polite(trainer.model):.2f}")
