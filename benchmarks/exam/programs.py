"""The programs that faults are planted in: sound ones, by the authors of the tests and by others."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(TESTS / "helpers")]),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "Agg",
}
_FRAMEWORKS = (
    ("keras", r"^(?:import|from) (?:keras|tensorflow)\b"),
    ("lightning", r"^(?:import|from) (?:lightning|pytorch_lightning)\b"),
    ("transformers", r"\b(?:Seq2Seq)?Trainer\("),
    ("accelerate", r"\bAccelerator\("),
)


@dataclass(frozen=True)
class Program:
    """One sound program."""

    name: str
    path: Path
    arguments: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Its text."""
        return self.path.read_text(encoding="utf-8")

    @property
    def framework(self) -> str:
        """The framework that trains it."""
        return next((name for name, found in _FRAMEWORKS if re.search(found, self.source, re.MULTILINE)), "torch")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it and its planted versions run with."""
        return ENVIRONMENT | ({"KERAS_BACKEND": self._backend()} if self.framework == "keras" else {})

    def _backend(self) -> str:
        written_for = re.search(r"^# backends: (\w+)", self.source, re.MULTILINE)
        return written_for.group(1) if written_for else "tensorflow"


def programs() -> list[Program]:
    """All of them, in a stable order."""
    paths = [*TESTS.glob("healthy/**/*.py"), *(p for p in TESTS.glob("idioms/*.py") if not p.stem.endswith("_bad"))]
    return [Program(str(p.relative_to(TESTS)), p) for p in sorted(paths)]
