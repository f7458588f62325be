"""The programs that faults are planted in: sound ones, by the authors of the tests and by others."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from exam import shipped
from exam.shipped_table import entries

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
EXAM = ROOT / "exam"
FIELD = Path(os.environ.get("TRAINWRIGHT_FIELD_CACHE", ROOT / ".field"))  # runs, packages and made models
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "lm" / "src"), str(TESTS / "helpers")]),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "Agg",
}
_FRAMEWORKS = (
    ("keras", r"^(?:import|from) (?:keras|tensorflow)\b"),
    ("lightning", r"^(?:import|from) (?:lightning|pytorch_lightning)\b"),
    ("transformers", r"\b(?:Seq2Seq|SFT|DPO|KTO|Reward)?Trainer\("),
    ("accelerate", r"\bAccelerator\("),
)


@dataclass(frozen=True)
class Program:
    """One sound program."""

    name: str
    path: Path
    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()  # PYTHONPATH among them goes behind the usual one
    changes: tuple[tuple[str, str], ...] = ()  # settings, as they are when the source is read: before, now

    @property
    def source(self) -> str:
        """Its text."""
        text = self.path.read_text(encoding="utf-8")
        for before, now in self.changes:
            text = text.replace(before, now)
        return text

    @property
    def framework(self) -> str:
        """The framework that trains it."""
        return next((name for name, found in _FRAMEWORKS if re.search(found, self.source, re.MULTILINE)), "torch")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it and its planted versions run with."""
        found = ENVIRONMENT | ({"KERAS_BACKEND": self._backend()} if self.framework == "keras" else {})
        given = dict(self.variables)
        paths = [found["PYTHONPATH"], *([given["PYTHONPATH"]] if "PYTHONPATH" in given else [])]
        return found | given | {"PYTHONPATH": os.pathsep.join(paths)}

    def _backend(self) -> str:
        written_for = re.search(r"^# backends: (\w+)", self.source, re.MULTILINE)
        return written_for.group(1) if written_for else "tensorflow"


def programs(others: bool = False) -> list[Program]:
    """Our own, in a stable order; `others`: and those of other authors, whose packages may be fetched."""
    own = [
        Program(str(path.relative_to(folder)), path)
        for folder, pattern in ((TESTS, "healthy/**/*.py"), (EXAM, "idioms/*.py"))
        for path in sorted(folder.glob(pattern))
    ]
    return [*own, *(_shipped() if others else ())]


@functools.cache
def _shipped() -> tuple[Program, ...]:
    """Those inside packages that are installed here or can be fetched."""
    return tuple(
        Program(
            name=one.name,
            path=one.folder(FIELD) / one.file,
            arguments=one.arguments,
            variables=shipped.variables(one, FIELD),
            changes=shipped.changes(one, FIELD),
        )
        for one in shipped.available(entries(), FIELD)
    )
