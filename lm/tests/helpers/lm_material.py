"""A small prepared data set and small recipes for the tests of `trainwright lm train`."""

import functools
import json
from pathlib import Path

from trainwright_lm.config import Recipe, load_recipe
from trainwright_lm.tokens.pack import write_tokens
from trainwright_lm.tokens.prepared import FORMAT
from trainwright_lm.tokens.tokenizer import train_tokenizer

SMALL = (
    "model.layers=2", "model.heads=2", "model.width=32", "model.context=16", "data.windows=8", "run.updates=12",
    "schedule.warmup_updates=2", "run.evaluate_every=4", "run.sample_every=0", "run.save_every=3", "run.log_every=2",
    "run.check=false", "run.precision=fp32", "run.keep=20", "run.evaluate_windows=0",
    "optimizer.learning_rate=3e-3", "optimizer.muon_learning_rate=0.02",
)  # fmt: skip


def small_recipe(*settings: str) -> Recipe:
    """A network of 2 layers, 32 wide, for a dozen updates."""
    return load_recipe("tiny", None, [*SMALL, *settings])


@functools.cache
def texts() -> tuple[str, ...]:
    """Python files of the standard library."""
    folder = Path(json.__file__).parent
    return tuple(file.read_text("utf-8") for file in sorted(folder.glob("*.py")))


@functools.cache
def small_tokenizer():
    """300 entries."""
    return train_tokenizer(texts(), vocabulary_size=300, byte_budget=100_000)


def write_data(folder: Path, fingerprint: str = "abc") -> Path:
    """A folder as `trainwright lm prepare` writes it, as far as training reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = small_tokenizer()
    tokenizer.save(folder / "tokenizer.json")
    splits = {}
    for split, documents in {"train": texts()[:-1], "validation": [texts()[-1][:3000]]}.items():
        ids, size = [*map(tokenizer.encode, documents)], tokenizer.vocabulary_size
        splits[split] = {"tokens": write_tokens(folder / f"{split}.bin", ids, size, end_id=tokenizer.end_id)}
    (folder / "data.json").write_text(json.dumps({"format": FORMAT, "fingerprint": fingerprint, "splits": splits}))
    return folder
