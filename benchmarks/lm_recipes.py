"""The two recipes of recipes/ beside `trainwright lm train`: the same packed windows, shape and number of updates.

    .venv/bin/python benchmarks/lm_recipes.py [--megabytes N]

Each of the three is a process of its own. The recipes are run as they are (`--tiny`), but for their data: they are given
the windows and the tokenizer that `trainwright lm prepare` made of the installed packages. Ours trains with as many
windows an update, as many updates, layers, heads and as wide, with the learning rate of preset `tiny`. The loss of all
three is in nats per token over the same held-out windows. The loop on Accelerate weights its loss by key tokens.
"""

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lm_quality import QUIET, CourseWindows, held_out, installed, lasting, loss_of, train_ours
from lm_tokens import peak_megabytes, processor_seconds

from trainwright_lm.config import load_recipe
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.prepared import PreparedData, open_data

RECIPES = Path(__file__).parents[1] / "recipes"
WAYS = ("codeparrot_trainer", "codeparrot_accelerate", "ours")
# As `--tiny` of the recipes.
SHAPE = ("model.layers=2", "model.heads=2", "model.width=96", "model.context=128", "data.windows=8")
VOCABULARY = 1000
Row = tuple[str, str, str, str, str]


def measure(megabytes: float = 1.2) -> list[Row]:
    """Rows of: what, reference, ours, ratio, goal; for each recipe its loss, speed and memory."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        installed(data, int(megabytes * 1e6), VOCABULARY)
        found = {way: run(way, data, Path(name) / way) for way in WAYS}
    ours = found.pop("ours")
    rows: list[Row] = []
    for way, theirs in found.items():
        what = f"recipes/{way}.py, {theirs['parameters'] / 1e6:.2f} M parameters, {theirs['updates']} updates"
        rows += [
            (f"{what}: validation loss", *_pair(theirs, ours, "loss", ".3f", "nats"), "at most 1.0"),
            (f"{what}: trained tokens", *_pair(theirs, ours, "rate", ",.0f", "per CPU-second"), ""),
            (f"{what}: peak memory", *_pair(theirs, ours, "memory", ",.0f", "MB"), ""),
        ]
    return rows


def _pair(theirs: dict[str, float], ours: dict[str, float], key: str, form: str, unit: str) -> tuple[str, str, str]:
    values = f"{theirs[key]:{form}} {unit}", f"{ours[key]:{form}} {unit}"
    return (*values, f"{ours[key] / theirs[key]:.2f}")


def run(way: str, data: Path, folder: Path) -> dict[str, float]:
    """What a process of its own measured."""
    command = [sys.executable, __file__, "--way", way, "--data", str(data), "--out", str(folder)]
    paths = os.pathsep.join([str(RECIPES), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(way, found, file=sys.stderr, flush=True)
    return found


def train(way: str, data: PreparedData, folder: Path) -> dict[str, float]:
    """Train in this process: the validation loss, tokens per CPU-second with all that belongs to a run, and memory."""
    recipe = load_recipe("tiny", settings=[*QUIET, *SHAPE])
    windows = Windows(data.train, recipe.model.context)
    updates = len(windows) // recipe.data.windows
    begun = processor_seconds()
    if way == "ours":
        loss = train_ours(data, lasting(recipe, updates), folder)
        seconds, memory = processor_seconds() - begun, peak_megabytes()
        model = open_run(folder, "last").model
    else:
        run_recipe(way, data, windows, folder)
        seconds, memory = processor_seconds() - begun, peak_megabytes()
        from transformers import GPT2LMHeadModel

        model = GPT2LMHeadModel.from_pretrained(folder).eval()
        loss = loss_of(model, held_out(data, recipe))
    return {
        "loss": loss,
        "rate": updates * recipe.data.windows * recipe.model.context / seconds,
        "memory": memory,
        "updates": updates,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def run_recipe(way: str, data: PreparedData, windows: Windows, folder: Path) -> None:
    """Run a recipe, with other data."""
    import codeparrot_data
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

    end = data.tokenizer.end_id
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(data.folder / "tokenizer.json"))
    tokenizer.eos_token = tokenizer.pad_token = tokenizer.convert_ids_to_tokens(end)

    def blocks(of: Windows) -> Any:
        return Dataset.from_dict({"input_ids": [CourseWindows(of)[i]["input_ids"].tolist() for i in range(len(of))]})

    held = Windows(data.validation, windows.context)
    codeparrot_data.prepare = lambda args: (tokenizer, blocks(windows), blocks(held))
    sys.argv = [f"{way}.py", "--tiny", "--out", str(folder), "--evaluate-every", "1000000", "--log-every", "50"]
    runpy.run_path(str(RECIPES / f"{way}.py"), run_name="__main__")


def main() -> None:
    """Print the rows as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1.2, help="of text to prepare")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # for `run`: a process of its own
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(train(options.way, open_data(options.data), options.out)))
        return
    print("| what | recipe | ours | ratio | goal |\n|---|---|---|---|---|")
    for row in measure(options.megabytes):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
