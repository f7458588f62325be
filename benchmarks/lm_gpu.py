"""Training speed on a GPU: `trainwright lm train` beside nanoGPT's train.py, unmodified, on the same tokens in one run.

    .venv/bin/python benchmarks/lm_gpu.py --nanogpt CLONE --data DATA [--sizes gpt2-1024,gpt2,small] [--updates N]

CLONE is a clone of github.com/karpathy/nanoGPT, DATA a folder of `trainwright lm prepare` with at most 65,536 entries:
nanoGPT reads the same train.bin. Both train on windows of the same size, as many at a time and in an update, in bf16,
compiled, and clip gradients. Speed is the median over the updates after the first 20, by each one's own log. MFU is
that speed in operations, by nanoGPT's own formula (6 per parameter and token, and attention's), over the peak that the
card's datasheet gives for dense bf16. Memory is the card's, sampled.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# TFLOP/s of dense bf16, by NVIDIA's datasheets of the SXM cards.
PEAKS = {"A100": 312.0, "H100": 989.0, "H200": 989.0}
SETTLED = 20
LOGGED = 10  # updates per line of our log


@dataclass(frozen=True, kw_only=True)
class Size:
    """A training of both."""

    preset: str
    layers: int
    heads: int
    width: int
    context: int
    windows: int
    at_once: int
    dropout: float = 0.0


SIZES = {
    # nanoGPT's own setting, with an eighth of its accumulation.
    "gpt2-1024": Size(preset="gpt2", layers=12, heads=12, width=768, context=1024, windows=60, at_once=12),
    "gpt2": Size(preset="gpt2", layers=12, heads=12, width=768, context=128, windows=256, at_once=128, dropout=0.1),
    "small": Size(preset="small", layers=8, heads=8, width=512, context=256, windows=64, at_once=64),
}


def train_ours(data: Path, size: Size, updates: int, more: Sequence[str] = ()) -> float:
    """Tokens per second of `trainwright lm train`."""
    with tempfile.TemporaryDirectory() as out:
        words = ["-m", "trainwright", "lm", "train", str(data), "--out", out, "--preset", size.preset]
        sets = [
            f"model.context={size.context}",
            f"model.dropout={size.dropout}",
            f"data.windows={size.windows}",
            f"data.micro_windows={size.at_once}",
            f"run.updates={updates}",
            f"run.log_every={LOGGED}",
            "run.evaluate_every=0",
            "run.sample_every=0",
            "run.save_every=0",
            "run.check=false",
            *more,
        ]
        for one in sets:
            words += ["--set", one]
        run([sys.executable, *words])
        records = [json.loads(line) for line in (Path(out) / "log.jsonl").read_text().splitlines()]
        return statistics.median(
            r["tokens_per_second"] for r in records if r["kind"] == "train" and r["update"] > SETTLED
        )


def train_nanogpt(clone: Path, data: Path, size: Size, updates: int, more: Sequence[str] = ()) -> float:
    """Tokens per second of nanoGPT's train.py."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("train.py", "model.py", "configurator.py"):
            shutil.copy(clone / name, folder)
        tokens = folder / "data" / "same"
        tokens.mkdir(parents=True)
        from trainwright_lm.tokens.prepared import open_data

        opened = open_data(data)
        opened.train.tokens.tofile(tokens / "train.bin")
        opened.validation.tokens.tofile(tokens / "val.bin")
        (tokens / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": vocabulary(data)}))
        words = {
            "dataset": "same",
            "n_layer": size.layers,
            "n_head": size.heads,
            "n_embd": size.width,
            "block_size": size.context,
            "batch_size": size.at_once,
            "gradient_accumulation_steps": size.windows // size.at_once,
            "dropout": size.dropout,
            "bias": size.preset == "gpt2",
            "max_iters": updates,
            "eval_iters": 1,
            "eval_interval": 10 * updates,
        }
        said = run([sys.executable, "train.py", *(f"--{k}={v}" for k, v in words.items()), *more], folder)
        seconds = [float(found) / 1000 for found in re.findall(r"^iter \d+: .*time ([\d.]+)ms", said, re.MULTILINE)]
        return size.windows * size.context / statistics.median(seconds[SETTLED:])


def run(command: list[str], folder: Path | None = None) -> str:
    """The command's output; its error ends this program."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} … ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return done.stdout


def vocabulary(data: Path) -> int:
    """The number of entries of the data's tokenizer."""
    from trainwright_lm.tokens.prepared import open_data

    return int(open_data(data).tokenizer.vocabulary_size)


def operations(size: Size, entries: int) -> float:
    """Of one token, forward and backward, by nanoGPT's estimate (PaLM, arXiv 2204.02311, appendix B)."""
    parameters = 12 * size.layers * size.width**2 + entries * size.width
    return 6 * parameters + 12 * size.layers * size.width * size.context


@contextmanager
def sampled_memory() -> Iterator[list[float]]:
    """The highest gigabytes in use on the first GPU within the context, less what was in use before."""
    import pynvml

    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    used = lambda: float(pynvml.nvmlDeviceGetMemoryInfo(card).used) / 1e9  # noqa: E731
    before, most, ended = used(), [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            most[0] = max(most[0], used() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        ended.set()
        watcher.join()


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanogpt", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--not-compiled", action="store_true", help="neither compiles")
    options = parser.parse_args()
    import torch

    card = torch.cuda.get_device_name()
    peak = next(value for name, value in PEAKS.items() if name in card)
    data = options.data.resolve()
    print(f"{card}, torch {torch.__version__}, vocabulary {vocabulary(data):,}, {options.updates} updates\n")
    print("| size | windows x context, at once | nanoGPT | ours | ratio |\n|---|---|---|---|---|", flush=True)
    ours_more = [] if not options.not_compiled else ["run.compile=false"]
    theirs_more = [] if not options.not_compiled else ["--compile=False"]
    for name in options.sizes.split(","):
        size = SIZES[name]
        share = operations(size, vocabulary(data)) / (peak * 1e12)
        with sampled_memory() as their_memory:
            theirs = train_nanogpt(options.nanogpt, data, size, options.updates, theirs_more)
        with sampled_memory() as our_memory:
            ours = train_ours(data, size, options.updates, ours_more)
        cells = [
            f"{speed:,.0f} tokens/s, MFU {speed * share:.1%}, {memory[0]:.1f} GB"
            for speed, memory in ((theirs, their_memory), (ours, our_memory))
        ]
        row = [name, f"{size.windows} x {size.context}, {size.at_once}", *cells, f"{ours / theirs:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
