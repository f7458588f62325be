"""What becomes of large programs: gigabytes of rows, a package of many files, a large model, a fault in a late row.

    .venv/bin/python benchmarks/large.py [NAME ...] [--parameters MILLIONS]

Each is run without us for some steps and then checked by `trainwright check` with its default budget. The seconds, the
peak of its memory in both (without the pages of mapped files), and whether the planted fault was named are printed.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "benchmarks" / "large_programs"
STEPS = 8
ROWS, WIDTH, LATE_ROW = 2_000_000, 256, 768_123
BAD_ROW = 1_900_000
FILES = 30
CHECK_SECONDS = 0.05
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
}
# Runs a program until it has made some optimizer steps.
_STOPPED = f"""
import os, runpy, sys
from torch.optim.optimizer import register_optimizer_step_post_hook
steps = []
def stepped(*_):
    steps.append(1)
    if len(steps) == {STEPS}:
        os._exit(0)
register_optimizer_step_post_hook(stepped)
sys.argv = sys.argv[1:]
sys.path.insert(0, os.getcwd())
if sys.argv[0] == "-m":
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A large program with one fault."""

    words: tuple[str, ...]
    """What follows `trainwright check`."""
    named: tuple[str, ...]
    """The rules that would be right."""
    told: str = ""
    """What the finding's message must hold, such as a row's number."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a program."""

    seconds: float
    peak_bytes: int
    output: str


def memory_mapped(folder: Path, options: argparse.Namespace) -> Program:
    """2 GB of rows."""
    random = np.random.default_rng(0)
    inputs = np.lib.format.open_memmap(folder / "inputs.npy", "w+", "float32", (ROWS, WIDTH))
    for start in range(0, ROWS, 100_000):
        inputs[start : start + 100_000] = random.random((100_000, WIDTH), dtype=np.float32) - 0.5
    inputs[LATE_ROW, 17] = np.nan
    np.save(folder / "labels.npy", inputs[:, :10].argmax(1))
    inputs.flush()
    words = (str(PROGRAMS / "memory_mapped.py"), str(folder))
    return Program(words=words, named=("non-finite-data", "failing-rows"), told=f"{LATE_ROW:,}")


def two_million_rows(folder: Path, options: argparse.Namespace) -> Program:
    """A fault in row 1,900,000 of 2,000,000."""
    words = (str(PROGRAMS / "two_million_rows.py"),)
    return Program(words=words, named=("label-out-of-range", "failing-rows"), told=f"{BAD_ROW:,}")


def package(folder: Path, options: argparse.Namespace) -> Program:
    """A package of 30 files with relative imports, started by `-m`; its loss has a softmax of its own."""
    source = folder / "pkg"
    (source / "layers").mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "layers" / "__init__.py").write_text("")
    count = FILES - 6
    for number in range(count):
        before = f"from .layer{number - 1} import Layer{number - 1}\n" if number else ""
        (source / "layers" / f"layer{number}.py").write_text(
            f"import torch\nfrom torch import nn\n{before}\n\nclass Layer{number}(nn.Module):\n"
            f"    def __init__(self, width):\n        super().__init__()\n        self.linear = nn.Linear(width, width)\n\n"
            f"    def forward(self, x):\n        return x + {'torch.relu(self.linear(x))' if number % 8 == 0 else '0.01 * self.linear(x)'}\n"
        )
    imports = "".join(f"from .layers.layer{n} import Layer{n}\n" for n in range(count))
    names = ", ".join(f"Layer{n}(width)" for n in range(count))
    (source / "model.py").write_text(
        f"from torch import nn\nfrom .head import Head\n{imports}\n\ndef build(width):\n"
        f"    return nn.Sequential({names}, Head(width))\n"
    )
    (source / "head.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Head(nn.Module):\n    def __init__(self, width):\n"
        "        super().__init__()\n        self.linear = nn.Linear(width, 4)\n\n    def forward(self, x):\n"
        "        return torch.softmax(self.linear(x), dim=1)\n"
    )
    (source / "data.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\ndef loader():\n"
        "    x = torch.randn(2_000, 32)\n    return DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=32, shuffle=True)\n"
    )
    (source / "train.py").write_text(
        "import torch\nfrom .data import loader\nfrom .model import build\n\n\ndef main():\n    torch.manual_seed(0)\n"
        "    model = build(32)\n    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n    for epoch in range(10):\n"
        "        for x, y in loader():\n            loss = torch.nn.functional.cross_entropy(model(x), y)\n"
        "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n\n\n"
        'if __name__ == "__main__":\n    main()\n'
    )
    return Program(words=("-m", "pkg.train"), named=("double-activation",), told="")


def many_parameters(folder: Path, options: argparse.Namespace) -> Program:
    """A model of hundreds of millions of parameters."""
    words = (str(PROGRAMS / "many_parameters.py"), str(options.parameters))
    return Program(words=words, named=("double-activation",))


MADE: dict[str, Callable[[Path, argparse.Namespace], Program]] = {
    "2 GB of rows, a NaN at step 3,000": memory_mapped,
    "row 1,900,000 of 2,000,000": two_million_rows,
    "a package of 30 files": package,
    "a large model": many_parameters,
}


def main() -> None:
    """Print a table of the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[f.__name__ for f in MADE.values()])
    parser.add_argument("--parameters", type=int, default=300, help="millions of parameters of the large model")
    options = parser.parse_args()
    print(f"{datetime.date.today()}, {machine()}\n", flush=True)
    print("| program | steps alone, s | check, s | memory alone, MB | memory of the check, MB | times | named |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for title, make in MADE.items():
        if make.__name__ in options.names:
            print(row_of(title, make, options), flush=True)


def row_of(title: str, make: Callable[[Path, argparse.Namespace], Program], options: argparse.Namespace) -> str:
    """A row of the table: the program, made in a folder that is deleted afterwards, run and checked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = make(folder, options)
        alone = run([sys.executable, "-c", _STOPPED, *program.words], folder)
        checked = run([sys.executable, "-m", "trainwright", "check", "--json", "-", *program.words], folder)
    report = json.loads(checked.output[checked.output.index("{") :])
    found = [f for f in report["findings"] if f["severity"] != "note"]
    right = [f["name"] for f in found if f["name"] in program.named and program.told in f["message"]]
    told = right[0] if right else f"no: {', '.join(f['name'] for f in found) or 'nothing'}"
    sizes = [one.peak_bytes / 2**20 for one in (alone, checked)]
    return (
        f"| {title} | {alone.seconds:.0f} | {checked.seconds:.0f} | {sizes[0]:,.0f} | {sizes[1]:,.0f} | "
        f"{sizes[1] / sizes[0]:.1f} | {told} |"
    )


def run(command: list[str], folder: Path) -> Run:
    """Run a command; its memory and that of its children is looked at as it runs."""
    started, peak = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=output, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, sum(private_bytes(number) for number in family(process.pid)))
            time.sleep(CHECK_SECONDS)
        output.seek(0)
        return Run(seconds=time.monotonic() - started, peak_bytes=peak, output=output.read())


def family(number: int) -> Iterator[int]:
    """A process and those that it started."""
    yield number
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def private_bytes(number: int) -> int:
    """The memory of a process that no file holds."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def machine() -> str:
    """The processor and its features, as lscpu tells them."""
    said = dict(
        line.split(":", 1)
        for line in subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
        if ":" in line
    )
    flags = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_tile") if f in said.get("Flags", "").split()]
    return f"{said['Model name'].strip()}, {said['CPU(s)'].strip()} CPUs, {' '.join(flags)}, {ENVIRONMENT['OMP_NUM_THREADS']} thread"


if __name__ == "__main__":
    main()
