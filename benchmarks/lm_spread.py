"""What prepare takes in one process and as tasks, by the size of the corpus, and training by the number of processes.

    .venv/bin/python benchmarks/lm_spread.py --sizes 25 100 500
    .venv/bin/python benchmarks/lm_spread.py --sizes 25 --workers 1 2 --train 1 2

The corpus is the Python files of this environment, again and again with other lines in between where they do not
suffice: about as many duplicates as code has. Memory is that of the process alone, without the files that it maps.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TABLE_BYTES = 5_000_000


def texts() -> Iterator[tuple[str, str]]:
    """Paths and texts, without end."""
    root = Path(json.__file__).parents[1]
    files = [*root.rglob("*.py"), *Path(sys.prefix).rglob("*.py")]
    random.Random(0).shuffle(files)
    for again in range(1000):
        for file in files:
            try:
                lines = file.read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                continue
            if again:
                lines = [line if at % 3 else f"{line}  # {again} {at}" for at, line in enumerate(lines)]
            yield f"{again}/{file}", "\n".join(lines)


def write_tables(folder: Path, size: int) -> tuple[list[Path], int]:
    """JSON lines of this many bytes of text, and how many."""
    made, files, held = texts(), list[Path](), 0
    documents = 0
    while held < size:
        files.append(folder / f"{len(files):05d}.jsonl")
        with files[-1].open("w") as stream:
            until = held + TABLE_BYTES
            while held < min(until, size):
                path, text = next(made)
                stream.write(json.dumps({"text": text, "path": path, "group": str(Path(path).parent)}) + "\n")
                held += len(text)
                documents += 1
    return files, documents


def run(words: list[str]) -> tuple[float, float]:
    """Seconds, and the most megabytes that one process of this command held."""
    command = [sys.executable, "-m", "trainwright", "lm", "prepare", *words]
    begun, most = time.monotonic(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        most = max(most, largest(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(command[:9])} … ended with status {process.returncode}")
    return time.monotonic() - begun, most / 1e3


def train(data: Path, processes: int, layout: str) -> float:
    """Tokens per second in the second half of a short training, on a thread per process."""
    with tempfile.TemporaryDirectory() as out:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        words = ["-m", "trainwright", "lm", "train", str(data), "--out", out, "--precision", "fp32"]
        sets = ("run.updates=60", "run.log_every=30", "run.check=false", "run.evaluate_every=0", "run.sample_every=0")
        for one in (*sets, f"run.distributed={layout}"):
            words += ["--set", one]
        command = [sys.executable, *(launcher if processes > 1 else []), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        lines = [json.loads(line) for line in Path(out, "log.jsonl").read_text().splitlines()]
    return float([line for line in lines if line["kind"] == "train"][-1]["tokens_per_second"])


def largest(session: int) -> int:
    """Kilobytes of the largest process of a session."""
    most = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == session:
                status = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines())
                most = max(most, int(status.get("RssAnon", "0").split()[0]))
        except (OSError, ValueError):
            continue
    return most


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 100], help="megabytes of text")
    parser.add_argument("--tasks", type=int, nargs="+", default=[0, 16], help="--tasks; 0: one process")
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument(
        "--train", type=int, nargs="*", default=[], help="processes that train on what was prepared last"
    )
    given = parser.parse_args()
    print("| MB | files | how | seconds | MB in the largest process |\n|---|---|---|---|---|")
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            files, documents = write_tables(Path(folder), size * 1_000_000)
            for tasks, workers in [(t, w) for t in given.tasks for w in (given.workers if t else [1])]:
                out = Path(folder) / f"data-{tasks}-{workers}"
                spread = ["--executor", "local", "--tasks", str(tasks), "--workers", str(workers)]
                seconds, most = run([*map(str, files), "--out", str(out), *(spread if tasks else [])])
                how = f"{tasks} tasks, {workers} at a time" if tasks else "one process"
                print(f"| {size} | {documents:,} | {how} | {seconds:,.0f} | {most:,.0f} |", flush=True)
            packed = [
                [(out / f"{n}.bin").read_bytes() for n in ("train", "validation")]
                for out in Path(folder).glob("data-*")
            ]
            assert all(one == packed[0] for one in packed)
            for processes in given.train:
                for layout in ("ddp", "fsdp") if processes > 1 else ("ddp",):
                    print(
                        f"train, {processes} processes, {layout}: {train(out, processes, layout):,.0f} tokens/s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
