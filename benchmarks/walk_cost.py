"""What a walk costs in training steps of the script: on loops whose steps take longer than what is fixed.

    .venv/bin/python benchmarks/walk_cost.py [SCRIPT ...]

A script is first run as it is until 15 optimizer steps were made; the median time between two of them is its step.
Then it is walked by `trainwright check`, and the walk's seconds, start-up and imports left out, are divided by that.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = 15
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "helpers")]),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
}
_TIMED = f"""
import os, runpy, sys, time
from torch.optim.optimizer import register_optimizer_step_post_hook
times = []
def stepped(*_):
    times.append(time.perf_counter())
    if len(times) == {STEPS}:
        print(*times, file=sys.stderr, flush=True)
        os._exit(0)
register_optimizer_step_post_hook(stepped)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


SCRIPTS = [*sorted((ROOT / "benchmarks/loops").glob("*.py")), ROOT / "tests/healthy/loops/minilm_plain_loop.py"]


def main() -> None:
    """Print the table."""
    print(table([Path(s) for s in sys.argv[1:]] or SCRIPTS))


def table(scripts: Sequence[Path]) -> str:
    """A row of Markdown for each script, after a heading."""
    lines = [
        "## What a walk costs",
        "",
        "`benchmarks/walk_cost.py`: healthy scripts whose steps take longer than what is fixed; imports left out.",
        "",
        "| script | its step, ms | walk, s | walk in training steps |",
        "|---|---|---|---|",
    ]
    for script in scripts:
        step, walk = step_seconds(script), walk_seconds(script)
        lines.append(f"| {script.stem} | {1000 * step:.0f} | {walk:.1f} | {walk / step:.0f} |")
    return "\n".join(lines)


def step_seconds(script: Path) -> float:
    """The median seconds between two optimizer steps of the script as it is; the first ones are left out."""
    ended = subprocess.run(
        [sys.executable, "-c", _TIMED, str(script)],
        capture_output=True, text=True, env=ENVIRONMENT, check=True,
    )  # fmt: skip
    times = [float(word) for word in ended.stderr.split()[-STEPS:]]
    return statistics.median(b - a for a, b in itertools.pairwise(times[3:]))


def walk_seconds(script: Path) -> float:
    """The seconds of the walk, as the report gives them."""
    ended = subprocess.run(
        [sys.executable, "-m", "trainwright", "check", "--no-rehearsal", "--json", "-", str(script)],
        capture_output=True, text=True, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    report = json.loads(ended.stdout)
    assert not report["findings"], f"{script} is a healthy script: {report['findings']}"
    return float(report["seconds"])


if __name__ == "__main__":
    main()
