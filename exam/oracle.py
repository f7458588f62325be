"""Whether a planted fault bites: the program, run for real, raises or ends worse than the sound one.

Sound programs run with three seeds. A planted one bites when it raises, or when a number that it ends with is worse than
the worst of the three by more than their spread and by more than a tolerance: scores of held-out rows, else scores of the
training rows, else losses. Faults of evaluation (`harm="differs"`) bite when a number of the evaluation leaves that range
on either side. Runs are cached by what they run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exam.operators import Harm
from exam.programs import FIELD, Program

SEEDS = (0, 1, 2)
_PATIENCE = 300  # seconds: a run is ended by its processor time long before, or it sleeps
_RUNNER = Path(__file__).parent / "real_run.py"
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
    files = [_RUNNER, *(_RUNNER.with_name(name) for name in ("recorded.py", "variables.py"))]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


_IMPORTS = {
    "torch": ("torch", "sklearn.datasets", "pandas"),
    "transformers": ("torch", "sklearn.datasets", "pandas", "datasets", "transformers.trainer"),
    "accelerate": ("torch", "sklearn.datasets", "pandas", "accelerate", "transformers"),
    "lightning": ("torch", "sklearn.datasets", "lightning.pytorch"),
}
_servers = threading.local()


def _run(program: Program, source: str, seed: int) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder) / program.path.name, Path(folder) / "outcome.json"
        script.write_text(source, encoding="utf-8")
        forked = program.framework in _IMPORTS and not program.variables
        (_run_forked if forked else _run_alone)(program, script, out, seed)
        return json.loads(out.read_text(encoding="utf-8")) if out.exists() else None


def _run_alone(program: Program, script: Path, out: Path, seed: int) -> None:
    """In a process of its own: TensorFlow does not survive a fork, and some programs have other paths."""
    command = [sys.executable, str(_RUNNER), str(script), str(out), str(seed), *program.arguments]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, cwd=script.parent, env=program.environment, timeout=_PATIENCE, capture_output=True, check=False
        )


def _run_forked(program: Program, script: Path, out: Path, seed: int) -> None:
    """From a process of this thread that has imported the framework."""
    servers = _servers.__dict__
    if program.framework not in servers:
        command = [sys.executable, str(_RUNNER), "--serve", *_IMPORTS[program.framework]]
        servers[program.framework] = subprocess.Popen(
            command, env=program.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
    server = servers[program.framework]
    request = {
        "script": str(script),
        "out": str(out),
        "seed": seed,
        "arguments": list(program.arguments),
        "folder": str(script.parent),
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    if not server.stdout.readline():
        raise RuntimeError(f"the process that runs {program.framework} programs has ended")


@dataclass(frozen=True)
class Number:
    """One number that a run ends with, in the sound runs and in the planted one."""

    name: str
    sound: tuple[float, ...]
    now: float
    higher_is_better: bool
    held_out: bool

    def __str__(self) -> str:
        return f"{self.name} {self.now:.4g}, sound {min(self.sound):.4g} to {max(self.sound):.4g}"

    def is_off(self, harm: Harm) -> bool:
        """Whether it is worse than the worst sound one by more than their spread and a tolerance, or just different."""
        low, high = min(self.sound), max(self.sound)
        tolerance = _SCORE_TOLERANCE if self.higher_is_better else _LOSS_TOLERANCE * max(abs(low), abs(high))
        margin = max(high - low, tolerance)
        below, above = self.now < low - margin, self.now > high + margin
        if not math.isfinite(self.now):
            return True
        return below or above if harm == "differs" else below if self.higher_is_better else above


def bites(sound: list[dict[str, Any]], planted: dict[str, Any] | None, harm: Harm) -> Bite:
    """Whether the planted run is worse than the sound ones.

    Held-out scores decide; where there are none scores of the training rows; where there are none losses. A loss alone
    would call it worse to sum what was averaged.
    """
    if planted is None:
        return Bite("", "no result within the time")
    if planted["raised"]:
        raised = planted["raised"]
        return Bite("crash", f"{raised['type']}: {raised['message']}", raised["line"])
    numbers = list(_numbers(sound, planted))
    if harm == "differs":
        deciding = [n for n in numbers if n.held_out]
    else:
        tiers = (
            [n for n in numbers if n.held_out and n.higher_is_better],
            [n for n in numbers if n.higher_is_better],
            numbers,
        )
        deciding = next((tier for tier in tiers if tier), [])
        deciding += [n for n in numbers if not math.isfinite(n.now)]
    off = next((n for n in deciding if n.is_off(harm)), None)
    return Bite("silent", str(off)) if off else Bite("", "no number is worse")


def _numbers(sound: list[dict[str, Any]], planted: dict[str, Any]) -> Iterator[Number]:
    for name in ("eval_score", "train_score", "train_loss"):
        values = [run[name] for run in sound]
        if None not in values and planted[name] is not None and all(map(math.isfinite, values)):
            yield Number(name, tuple(values), planted[name], name != "train_loss", name == "eval_score")
    for name, now in planted["reported"].items():
        values = [run["reported"].get(name) for run in sound]
        better = -1 if _LOSSES.search(name) else 1 if _SCORES.search(name) else 0
        if better and None not in values and all(map(math.isfinite, values)):
            yield Number(f"reported {name}", tuple(values), now, better > 0, "train" not in name.lower())
