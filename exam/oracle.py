"""Whether a planted fault bites: the program, rehearsed to its end, raises or ends worse than the sound one.

Sound programs run with three seeds. A planted one bites when it raises, or when what decides (scores at
evaluation, else in training, else losses: outcome.py) is worse than in the worst of the three by more than
their spread and a tolerance. Faults of evaluation (`harm="differs"`) bite when a number of the
evaluation leaves that range on either side. Runs are cached by what they run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from exam.operators import Harm
from exam.outcome import Comparison, Measure, compare, deciding, measures_of
from exam.programs import FIELD, ROOT, Program
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record

SEEDS = (0, 1, 2)
# Of processor time from the first update on, of which a training has 0.6 (rehearsal/limits.py): a program that takes longer
# says nothing. And on the wall, for one that sleeps.
_SECONDS, _PATIENCE = 100.0, 300.0


@dataclass(frozen=True)
class Raised:
    """The exception that ended a run, and its line in the program."""

    type: str
    message: str
    line: int | None


@dataclass(frozen=True)
class Run:
    """What became of one run."""

    measures: tuple[Measure, ...]
    raised: Raised | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Bite:
    """What the fault did to the program."""

    kind: str  # "crash", "silent" or "" (harmless)
    because: str
    line: int | None = None  # where it raised

    def __bool__(self) -> bool:
        return bool(self.kind)


def sound_runs(program: Program) -> list[Run] | None:
    """The runs with the three seeds; None where the program does not run to its end in time."""
    runs = []
    for seed in SEEDS:
        run = real_run(program, program.source, seed)
        if run is None or run.raised:
            return None
        runs.append(run)
    return runs


def real_run(program: Program, source: str, seed: int = 0) -> Run | None:
    """One run; None where it took too long, or where what ended it is no fault of the program."""
    given = [*program.arguments, *(value for pair in program.variables for value in pair)]
    kept = cached("runs", source, str(seed), *given, _engine())
    if not kept.exists():
        run = _run(program, source, seed)
        kept.write_text(json.dumps(run and asdict(run)), encoding="utf-8")
    held = json.loads(kept.read_text(encoding="utf-8"))
    if held is None:
        return None
    raised = Raised(**held["raised"]) if held["raised"] else None
    return Run(tuple(Measure(**one) for one in held["measures"]), raised, held["seconds"])


def cached(folder: str, *what: str) -> Path:
    """The file in which something is kept that depends on these texts; it may not be there yet."""
    key = hashlib.sha256("\0".join(what).encode()).hexdigest()[:24]
    file = FIELD / folder / f"{key}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


@functools.cache
def _engine() -> str:
    """Changes with the code that runs programs and measures them."""
    files = [f for part in ("rehearsal", "review") for f in (ROOT / "src" / "trainwright" / part).rglob("*.py")]
    return hashlib.sha256(b"".join(f.read_bytes() for f in sorted(files))).hexdigest()


_IMPORTS = {
    "torch": ("torch", "sklearn.datasets", "pandas"),
    "transformers": ("torch", "sklearn.datasets", "pandas", "datasets", "transformers.trainer"),
    "accelerate": ("torch", "sklearn.datasets", "pandas", "accelerate", "transformers"),
    "lightning": ("torch", "sklearn.datasets", "lightning.pytorch"),
}
_servers = threading.local()  # they end with their thread


def _server(program: Program) -> Server | None:
    """A process of this thread that has imported the framework. TensorFlow does not survive a fork, and some programs have
    other paths: those run alone."""
    if program.framework not in _IMPORTS or program.variables:
        return None
    servers = _servers.__dict__
    if program.framework not in servers:
        servers[program.framework] = Server(_IMPORTS[program.framework], program.environment).__enter__()
    return servers[program.framework]  # type: ignore[no-any-return]


def _run(program: Program, source: str, seed: int) -> Run | None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / program.path.name
        script.write_text(source, encoding="utf-8")
        until = time.monotonic() + _PATIENCE
        with Rehearsal(
            str(script), program.arguments, seconds=_SECONDS, environment=program.environment, folder=Path(folder),
            seed=seed, server=_server(program),
        ) as rehearsal:  # fmt: skip
            return _run_of(rehearsal.wait(until=lambda: time.monotonic() > until), script)


def _run_of(record: Record, script: Path) -> Run | None:
    ended, failure = record.ended, record.ended.failure
    if ended.is_cut or ended.hindrance or ended.own_error or ended.status or any(t.is_cut for t in record.trainings):
        return None
    raised = None
    if failure is not None:
        where = failure.where if failure.where and Path(failure.where.file).name == script.name else None
        raised = Raised(failure.type, failure.message[:300], where.line if where else None)
    return Run(tuple(measures_of(record)), raised, record.seconds)


def bites(sound: list[Run], planted: Run | None, harm: Harm) -> Bite:
    """Whether the planted run is worse than the sound ones."""
    if planted is None:
        return Bite("", "no result within the time")
    if planted.raised:
        raised = planted.raised
        return Bite("crash", f"{raised.type}: {raised.message}", raised.line)
    compared = compare([run.measures for run in sound], [planted.measures])
    off = next((one for one in compared if _is_off(one)), None) if harm == "differs" else None
    if harm == "worse":
        off = next((one for one in deciding(compared) if one.is_better), None)
    return Bite("silent", str(off)) if off else Bite("", "no number is worse")


def _is_off(one: Comparison) -> bool:
    return one.measure.is_evaluated and (one.is_better or one.is_worse)
