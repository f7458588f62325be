"""Whether a planted fault bites: the program, run for real, raises or ends worse than the sound one.

Sound programs run with three seeds. A planted one bites when it raises, or when one of the numbers that its training or
evaluation ends with is worse than the worst of the three by more than their spread and by more than a tolerance. Faults of
evaluation (`harm="differs"`) bite when a number of the evaluation leaves that range on either side. Runs are cached by
what they run.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exam.operators import Harm
from exam.programs import FIELD, Program

SECONDS = 90  # a real run that takes longer says nothing
SEEDS = (0, 1, 2)
_SCORE_TOLERANCE = 0.03  # of accuracy or R2
_LOSS_TOLERANCE = 0.10  # of the loss
_LOSSES = re.compile(r"loss|error|mse|mae|perplexity|ppl|nll|bce|rmse|elbo", re.IGNORECASE)
_SCORES = re.compile(
    r"acc|f1|r2|auc|precision|recall|score|dice|iou|correct|reward|return|mcc|spearman|pearson", re.IGNORECASE
)


@dataclass(frozen=True)
class Bite:
    """What the fault did to the program."""

    kind: str  # "crash", "silent" or "" (harmless)
    because: str
    line: int | None = None  # where it raised

    def __bool__(self) -> bool:
        return bool(self.kind)


def sound_runs(program: Program) -> list[dict[str, Any]] | None:
    """The outcomes of the three seeds; None where the program does not run to its end in time."""
    runs = []
    for seed in SEEDS:
        run = real_run(program, program.source, seed)
        if run is None or run["raised"]:
            return None
        runs.append(run)
    return runs


def real_run(program: Program, source: str, seed: int = 0) -> dict[str, Any] | None:
    """The outcome of one real run; None where it took too long or left no result."""
    given = [*program.arguments, *(value for pair in program.variables for value in pair)]
    key = hashlib.sha256("\0".join([source, str(seed), *given, _runner()]).encode()).hexdigest()[:24]
    kept = FIELD / "runs" / f"{key}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(_run(program, source, seed)), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _runner() -> str:
    return hashlib.sha256((Path(__file__).parent / "real_run.py").read_bytes()).hexdigest()


def _run(program: Program, source: str, seed: int) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder) / program.path.name, Path(folder) / "outcome.json"
        script.write_text(source, encoding="utf-8")
        command = [sys.executable, str(Path(__file__).parent / "real_run.py"), str(script), str(out), str(seed)]
        try:
            subprocess.run(
                [*command, *program.arguments],
                cwd=folder, env=program.environment, timeout=SECONDS, capture_output=True, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        return json.loads(out.read_text(encoding="utf-8")) if out.exists() else None


def bites(sound: list[dict[str, Any]], planted: dict[str, Any] | None, harm: Harm) -> Bite:
    """Whether the planted run is worse than the sound ones."""
    if planted is None:
        return Bite("", "no result within the time")
    if planted["raised"]:
        raised = planted["raised"]
        return Bite("crash", f"{raised['type']}: {raised['message']}", raised["line"])
    for name, values, now, better in _numbers(sound, planted):
        low, high = min(values), max(values)
        tolerance = _LOSS_TOLERANCE * max(abs(low), abs(high)) if better < 0 else _SCORE_TOLERANCE
        margin = max(high - low, tolerance)
        said = f"{name} {now:.4g}, sound {low:.4g} to {high:.4g}"
        if not math.isfinite(now):
            return Bite("silent", said)
        worse = now > high + margin if better < 0 else now < low - margin
        differs = now < low - margin or now > high + margin
        if worse or (harm == "differs" and name not in ("train_loss", "train_score") and differs):
            return Bite("silent", said)
    return Bite("", "no number is worse")


def _numbers(sound: list[dict[str, Any]], planted: dict[str, Any]) -> Iterator[tuple[str, list[float], float, int]]:
    """Name, the sound values, the planted value, and +1 where higher is better or -1."""
    for name, better in (("eval_score", 1), ("train_score", 1), ("train_loss", -1)):
        values = [run[name] for run in sound]
        if None not in values and planted[name] is not None and all(map(math.isfinite, values)):
            yield name, values, planted[name], better
    for name, now in planted["reported"].items():
        values = [run["reported"].get(name) for run in sound]
        better = -1 if _LOSSES.search(name) else 1 if _SCORES.search(name) else 0
        if better and None not in values and all(map(math.isfinite, values)):
            yield f"reported {name}", values, now, better
