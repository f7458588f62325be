"""Subject-verb agreement probe: a word-level GPT trained on an artificial grammar with attractor phrases."""
import random
import tempfile
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

NOUNS = {"sg": ["dog", "child", "painter", "king", "robot"], "pl": ["dogs", "children", "painters", "kings", "robots"]}
VERBS = {"sg": ["sleeps", "sings", "waits", "laughs"], "pl": ["sleep", "sing", "wait", "laugh"]}
ADJECTIVES = ["old", "small", "happy", "green"]
PREPOSITIONS = ["near", "behind", "with"]
ADVERBS = ["quietly", "often", "today"]
SPECIALS = ["<pad>", "<s>", "</s>"]
VOCAB = SPECIALS + ["the"] + [w for g in (NOUNS, VERBS) for n in ("sg", "pl") for w in g[n]] \
    + ADJECTIVES + PREPOSITIONS + ADVERBS
STOI = {w: i for i, w in enumerate(VOCAB)}
PAD, BOS, EOS = (STOI[w] for w in SPECIALS)


@dataclass
class ProbeConfig:
    sentences: int = 1600
    d_model: int = 48
    layers: int = 2
    heads: int = 4
    epochs: int = 4
    batch: int = 32
    lr: float = 3e-3
    attractor_rate: float = 0.5
    seed: int = 101


def noun_phrase(rng, number):
    words = ["the"]
    if rng.random() < 0.4:
        words.append(rng.choice(ADJECTIVES))
    return words + [rng.choice(NOUNS[number])]


def sentence(rng, attractor_rate):
    """Returns (words, index of the verb, number of the subject)."""
    number = rng.choice(["sg", "pl"])
    words = noun_phrase(rng, number)
    if rng.random() < attractor_rate:
        words += [rng.choice(PREPOSITIONS)] + noun_phrase(rng, rng.choice(["sg", "pl"]))
    verb_at = len(words)
    words.append(rng.choice(VERBS[number]))
    if rng.random() < 0.5:
        words.append(rng.choice(ADVERBS))
    return words, verb_at, number


class GrammarCorpus(Dataset):
    def __init__(self, n, attractor_rate, seed):
        rng = random.Random(seed)
        self.items = [sentence(rng, attractor_rate)[0] for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return [BOS] + [STOI[w] for w in self.items[i]] + [EOS]


def collate(rows):
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), PAD)
    for r, row in enumerate(rows):
        ids[r, :len(row)] = torch.tensor(row)
    inputs, targets = ids[:, :-1], ids[:, 1:]
    return {
        "input_ids": inputs,
        "attention_mask": (inputs != PAD).long(),
        "labels": targets.masked_fill(targets == PAD, -100),
    }


@torch.no_grad()
def agreement_score(model, n, seed):
    """Probability mass on correctly inflected verbs against the wrong inflection, at the verb position."""
    was_training = model.training
    model.eval()
    rng = random.Random(seed)
    right = verbish = 0.0
    for _ in range(n):
        words, verb_at, number = sentence(rng, attractor_rate=1.0)
        prefix = torch.tensor([[BOS] + [STOI[w] for w in words[:verb_at]]])
        p = model(input_ids=prefix).logits[0, -1].softmax(-1)
        good = sum(p[STOI[v]].item() for v in VERBS[number])
        bad = sum(p[STOI[v]].item() for v in VERBS["pl" if number == "sg" else "sg"])
        right += good > bad
        verbish += good + bad
    model.train(was_training)
    return right / n, verbish / n


class AgreementLogger(TrainerCallback):
    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        acc, mass = agreement_score(model, 60, seed=7)
        print(f"epoch {state.epoch:.0f}: agreement {acc:.3f}, verb mass {mass:.3f}")


def main():
    cfg = ProbeConfig()
    set_seed(cfg.seed)
    train_set = GrammarCorpus(cfg.sentences, cfg.attractor_rate, cfg.seed)
    val_set = GrammarCorpus(200, cfg.attractor_rate, cfg.seed + 1)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(VOCAB), n_positions=32, n_embd=cfg.d_model, n_layer=cfg.layers, n_head=cfg.heads,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.06,
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD))
    print(f"{len(VOCAB)} words, {sum(p.numel() for p in model.parameters())} parameters")
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=cfg.epochs, per_device_train_batch_size=cfg.batch,
            per_device_eval_batch_size=100, learning_rate=cfg.lr, lr_scheduler_type="cosine",
            warmup_steps=15, weight_decay=0.01, eval_strategy="epoch", save_strategy="no",
            logging_steps=50, report_to=[], disable_tqdm=True, seed=cfg.seed, use_cpu=True)
        trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=val_set,
                          data_collator=collate, callbacks=[AgreementLogger()])
        trainer.train()
        val = trainer.evaluate()
    acc, mass = agreement_score(model, 200, seed=99)
    print(f"val loss {val['eval_loss']:.4f} | agreement {acc:.3f} | verb mass {mass:.3f}")


if __name__ == "__main__":
    main()
