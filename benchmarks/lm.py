"""What `trainwright lm` reaches beside the usual tools, on the same data in the same run, as one Markdown table.

    .venv/bin/python benchmarks/lm.py [--parts tokens,training,generation,quality] [--write FILE]

Each part is a script of its own and can be run alone, with settings of its own: lm_tokens.py (tokenize and pack),
lm_training.py (speed and memory of a step), lm_generation.py (completions), lm_quality.py (tokens until the loss of the
course's recipe: many minutes), lm_recipes.py (the two recipes of recipes/ beside ours). lm_gpu.py
(beside nanoGPT on a GPU) and lm_spread.py are run by themselves. Rates are per CPU-second, so that a shared machine tells the same.
"""

import argparse
import datetime
import importlib
import os
import platform
from pathlib import Path

PARTS = ("tokens", "training", "generation", "quality", "recipes")


def main() -> None:
    """Measure the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="which, separated by commas")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    options = parser.parse_args()
    rows = []
    for part in options.parts.split(","):
        rows += importlib.import_module(f"lm_{part}").measure()
    text = table(rows)
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")


def table(rows: list[tuple[str, str, str, str, str]]) -> str:
    """The rows under a heading with date and machine."""
    day = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    lines = [
        "# What `trainwright lm` reaches",
        "",
        f"`benchmarks/lm.py` on {day}, {machine}.",
        "",
        "| what | reference | ours | ratio | goal |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
