"""Tokenise and pack Python files: ours beside the course's `datasets.map` and the tokenizers library's `encode_batch`.

    .venv/bin/python benchmarks/lm_tokens.py [--megabytes N] [--rounds N]

The files are those of this environment's packages, in an order mixed by a fixed seed. All three use one tokenizer.json of
50,000 entries, trained on the first 20 MB. They take turns, each round one after the other, and are measured in seconds
of the processor, their threads and children included; a row gives the middle round. The reference runs on one thread,
where it needs the fewest processor seconds.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

from trainwright_lm.tokens.pack import open_tokens, write_tokens
from trainwright_lm.tokens.tokenizer import END, Tokenizer, load_tokenizer, train_tokenizer

VOCABULARY_SIZE = 50_000  # the course's
TRAINED_ON_BYTES = 20_000_000
CONTEXT = 128
DOCUMENTS = 1000  # at a time: the default of `datasets.map`
Row = tuple[str, str, str, str, str]


def measure(megabytes: float = 50, rounds: int = 3) -> list[Row]:
    """Rows of: what, reference, ours, ratio, goal."""
    texts = list(python_files(megabytes))
    size = sum(len(text.encode()) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = train_tokenizer(
            texts, vocabulary_size=VOCABULARY_SIZE, byte_budget=min(TRAINED_ON_BYTES, int(megabytes * 4e5))
        )
        tokenizer.save(folder / "tokenizer.json")
        ways: dict[str, Callable[[], int]] = {
            "map": lambda: course_map(texts, folder),
            "batch": lambda: encode_batch(texts, folder),
            "ours": lambda: pack(texts, tokenizer, folder / "tokens.bin"),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        found: dict[str, int] = {}
        for _ in range(rounds):
            for way, work in ways.items():
                before = processor_seconds()
                found[way] = work()
                seconds[way].append(processor_seconds() - before)
        packed = open_tokens(folder / "tokens.bin")
        if found["ours"] != found["batch"]:
            raise AssertionError(f"{found['batch']} tokens by encode_batch, {found['ours']} by ours")
        return [
            speed("`datasets.map`", size, seconds["map"], seconds["ours"], 8),
            speed("`encode_batch`", size, seconds["batch"], seconds["ours"], 4),
            disk(folder, found, packed.path.stat().st_size),
            memory(megabytes, folder),
        ]


def speed(reference: str, size: float, theirs: list[float], ours: list[float], goal: float) -> Row:
    """One row of MB per processor second, from the middle of the rounds."""
    ratio = statistics.median(a / b for a, b in zip(theirs, ours, strict=True))
    return (
        f"tokenise and pack {size:.0f} MB of Python, beside {reference}",
        f"{size / statistics.median(theirs):.1f} MB per CPU-second",
        f"{size / statistics.median(ours):.1f} MB per CPU-second",
        f"{ratio:.1f}x",
        f"at least {goal:g}x",
    )


def disk(folder: Path, found: dict[str, int], packed_bytes: int) -> Row:
    """Bytes on the disk for each token kept."""
    theirs = (folder / "map.arrow").stat().st_size / found["map"]
    ours = packed_bytes / found["ours"]
    return ("bytes on disk for a token, index included", f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.2f}x", "2")


def memory(megabytes: float, folder: Path) -> Row:
    """Peak memory of reading, tokenizing and packing all files, and a fifth of them."""
    peaks = []
    for part in (megabytes / 5, megabytes):
        command = [sys.executable, __file__, "--pack", str(folder), "--megabytes", str(part)]
        finished = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(int(finished.stdout))
    return (
        "peak memory of the process that packs",
        f"{peaks[0]} MB for {megabytes / 5:.0f} MB",
        f"{peaks[1]} MB for {megabytes:.0f} MB",
        f"{peaks[1] / peaks[0]:.2f}x",
        "constant",
    )


def course_map(texts: list[str], folder: Path) -> int:
    """The course's step as it is written there, to a file; how many tokens it keeps."""
    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token=END)

    def tokenize(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        outputs = tokenizer(
            batch["content"], truncation=True, max_length=CONTEXT, return_overflowing_tokens=True, return_length=True
        )
        pairs = zip(outputs["length"], outputs["input_ids"], strict=True)
        return {"input_ids": [ids for length, ids in pairs if length == CONTEXT]}

    data = datasets.Dataset.from_dict({"content": texts})
    chunks = data.map(
        tokenize,
        batched=True,
        remove_columns=data.column_names,
        cache_file_name=str(folder / "map.arrow"),
        load_from_cache_file=False,
    )
    return len(chunks) * CONTEXT


def encode_batch(texts: list[str], folder: Path) -> int:
    """The library alone, its ids kept nowhere; how many tokens there are, an end for each text."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    count = len(texts)
    for start in range(0, len(texts), DOCUMENTS):
        count += sum(len(found.ids) for found in tokenizer.encode_batch(texts[start : start + DOCUMENTS]))
    return count


def pack(texts: list[str] | Iterator[str], tokenizer: Tokenizer, file: Path) -> int:
    """Ours, to a file; how many tokens there are."""
    return write_tokens(file, map(tokenizer.encode_array, texts), tokenizer.vocabulary_size, end_id=tokenizer.end_id)


def python_files(megabytes: float) -> Iterator[str]:
    """The environment's Python files, mixed, up to so many MB; those that are not UTF-8 are left out."""
    files = sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))
    random.Random(0).shuffle(files)
    left = megabytes * 1e6
    for file in files:
        content = file.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            continue
        left -= len(content)
        if left < 0:
            return
        yield text


def processor_seconds() -> float:
    """Of this process, its threads and its ended children."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def peak_megabytes() -> int:
    """Of this program alone: on Linux `ru_maxrss` begins at that of the process which started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000_000
    kibibytes = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]
    return int(kibibytes) * 1024 // 1_000_000


def main() -> None:
    """Print the rows as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pack", type=Path, help=argparse.SUPPRESS)  # for `memory`: a process of its own
    arguments = parser.parse_args()
    if arguments.pack:
        tokenizer = load_tokenizer(arguments.pack / "tokenizer.json")
        pack(python_files(arguments.megabytes), tokenizer, arguments.pack / "alone.bin")
        print(peak_megabytes())
        return
    print("| what | reference | ours | ratio | goal |\n|---|---|---|---|---|")
    for row in measure(arguments.megabytes, arguments.rounds):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
