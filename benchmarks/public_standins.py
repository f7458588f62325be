"""Stand-in data for public training scripts: small, made or carried by the repositories, and learnable."""

import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def hub(made: Path, _checkout: Path) -> None:
    """Small models and tokenizers under the names that scripts ask the hub for."""
    if not (made / "hub").exists():
        maker, paths = ROOT / "exam" / "made", os.environ.get("PYTHONPATH", "")
        environment = {**os.environ, "PYTHONPATH": f"{maker}{os.pathsep}{paths}"}
        subprocess.run([sys.executable, str(maker / "hub.py"), str(made / "hub")], check=True, env=environment)


def sentences(made: Path, checkout: Path) -> None:
    """Pairs of sentences and how near they are, in a folder named as the set is on the hub; a score is what they share."""
    hub(made, checkout)
    folder = made / "sets" / "sentence-transformers" / "stsb"
    for part, seed, count in (("train", 0, 600), ("validation", 1, 150), ("test", 2, 150)):
        chance = random.Random(seed)
        rows = []
        for first in _sentences(seed, count):
            kept = chance.random()
            others = _sentences(chance.randrange(10**6), 1)[0].split()
            second = [o if chance.random() > kept else w for w, o in zip(first.split(), others)]
            same = sum(a == b for a, b in zip(first.split(), second)) / len(second)
            rows.append(json.dumps({"sentence1": first, "sentence2": " ".join(second), "score": same}))
        _write(folder / f"{part}.jsonl", "\n".join(rows))


def words(made: Path, checkout: Path) -> None:
    """Three files of sentences whose words follow a grammar."""
    hub(made, checkout)
    for part, seed, count in (("train", 0, 4000), ("valid", 1, 400), ("test", 2, 400)):
        _write(made / "words" / f"{part}.txt", "\n".join(_sentences(seed, count)) + "\n")


def running_text(_made: Path, checkout: Path) -> None:
    """Sentences in the file that Lightning's set of texts reads; the script holds out 4,000 pieces of 35 words."""
    text = "\n".join(_sentences(0, 22_000))
    _write(checkout / "examples" / "pytorch" / "basics" / "data" / "wikitext-2.txt", text)


def waves(_made: Path, checkout: Path) -> None:
    """The sine waves of the script's own generator."""
    import torch

    rng = np.random.RandomState(2)
    starts = np.arange(1000) + rng.randint(-80, 80, (100, 1))
    torch.save(np.sin(starts / 20.0), checkout / "time_sequence_prediction" / "traindata.pt")


def cora(_made: Path, checkout: Path) -> None:
    """A graph of 2,708 nodes of seven kinds that prefer their like, and 1,433 words each; in the files of Cora."""
    rng = np.random.RandomState(0)
    kinds = rng.randint(0, 7, 2708)
    rows = []
    for node, kind in enumerate(kinds):
        chosen = np.concatenate([kind * 200 + rng.randint(0, 200, 6), rng.randint(0, 1433, 12)])
        bits = np.zeros(1433, int)
        bits[chosen] = 1
        rows.append(f"{node}\t" + "\t".join(map(str, bits)) + f"\tkind_{kind}")
    pairs = []
    for node, kind in enumerate(kinds):
        alike = rng.choice(np.flatnonzero(kinds == kind), 2)
        pairs += [f"{node}\t{other}" for other in [*alike, *rng.randint(0, 2708, rng.randint(0, 2))]]
    for script in ("gat", "gcn"):
        _write(checkout / script / "cora" / "cora.content", "\n".join(rows))
        _write(checkout / script / "cora" / "cora.cites", "\n".join(pairs))


def characters(_made: Path, checkout: Path) -> None:
    """The same text, prepared as nanoGPT's own script prepares it."""
    text = _text()
    letters = sorted(set(text))
    index = {letter: i for i, letter in enumerate(letters)}
    ids = np.array([index[letter] for letter in text], dtype=np.uint16)
    folder, cut = checkout / "data" / "shakespeare_char", int(len(ids) * 0.9)
    folder.mkdir(parents=True, exist_ok=True)
    ids[:cut].tofile(folder / "train.bin")
    ids[cut:].tofile(folder / "val.bin")
    meta = {"vocab_size": len(letters), "stoi": index, "itos": dict(enumerate(letters))}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def _sentences(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    who = ["the king", "the queen", "a soldier", "my lord", "the servant", "her brother", "the priest", "a stranger"]
    did = ["sees", "loves", "fears", "follows", "forgets", "praises", "betrays", "seeks"]
    what = ["the crown", "the sword", "the letter", "a ghost", "the castle", "the storm", "the truth", "a ring"]
    when = ["at night", "in spring", "before the war", "after supper", "without hope", "with joy"]
    return [
        f"{chance.choice(who)} {chance.choice(did)} {chance.choice(what)} {chance.choice(when)} ." for _ in range(count)
    ]


def _text() -> str:
    return "\n".join(_sentences(0, 12_000)) + "\n"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
