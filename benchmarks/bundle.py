"""Print how often `trainwright bundle` writes a script that shows the finding again, for faulty scripts of the tests.

    .venv/bin/python -m benchmarks.bundle [--draw N] [--seed N] [--cut] [SCRIPT...]

Without scripts, N of tests/rules and tests/fit are drawn, as many of each kind (a loop, a Trainer, Keras). Scripts are
checked, not rehearsed. Without --cut the script that was found is not cut down, so the lines are those before it.
"""

import argparse
import contextlib
import io
import os
import random
import tempfile
import time
from pathlib import Path

from trainwright.bundle import reproduce
from trainwright.bundling import SCRIPT, bundle_program
from trainwright.options import Options
from trainwright.start.program import Program

ROOT = Path(__file__).parents[1]
SECONDS = 600.0


def main() -> None:
    """Bundle each script, and print a row for it and the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, default=24, help="scripts that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--cut", action="store_true", help="cut the script down as bundle does")
    parser.add_argument("script", nargs="*", type=Path)
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "tests" / "helpers"), "KERAS_BACKEND": "tensorflow"}
    if not options.cut:
        reproduce.smaller = lambda statements, shows: statements
    shown = made_up = done = 0
    table = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the checks' own reports
    print("| script | seconds | what the bundle says | lines |\n|---|---|---|---|", file=table)
    for script in [p.resolve() for p in options.script] or draw(options.draw, options.seed):
        started = time.monotonic()
        said, lines = bundle(script)
        done, shown, made_up = done + 1, shown + (lines > 0), made_up + (lines > 0 and "made-up" in said)
        print(
            f"| `{script.relative_to(ROOT)}` | {time.monotonic() - started:.0f} | {said} | {lines or ''} |",
            file=table,
            flush=True,
        )
    print(f"\n{shown} of {done} shown again, {made_up} with made-up values", file=table)


def draw(count: int, seed: int) -> list[Path]:
    """As many faulty scripts of each kind, in a mixed order."""
    scripts = sorted(p for part in ("rules", "fit") for p in (ROOT / "tests" / part).rglob("bad*.py"))
    kinds: dict[str, list[Path]] = {"keras": [], "Trainer": [], "loop": []}
    for script in scripts:
        text = script.read_text("utf-8")
        kinds["keras" if "keras" in text else "Trainer" if "Trainer" in text else "loop"].append(script)
    chance = random.Random(seed)
    drawn = [script for of in kinds.values() for script in chance.sample(of, count // len(kinds))]
    chance.shuffle(drawn)
    return drawn


def bundle(script: Path) -> tuple[str, int]:
    """What the bundle says of its smallest script, and how many lines that has; 0 if there is none."""
    with tempfile.TemporaryDirectory(prefix="trainwright-") as folder, contextlib.chdir(script.parent):
        out = Path(folder) / "bundle"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            bundle_program(Program(script=str(script)), out, Options(), seconds=SECONDS, with_data=False, say=str)
        found = out / SCRIPT
        told = said.getvalue().strip().rpartition("paste it. ")[2]
        return told, found.read_text("utf-8").count("\n") if found.exists() else 0


if __name__ == "__main__":
    main()
