"""An exam: programs, operators and places drawn by a seed, the harmless ones left out."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exam.operators import OPERATORS, Operator
from exam.oracle import Bite, bites, cached, real_run, sound_runs
from exam.programs import Program
from exam.source import Planted, Source

_TRIES = 48  # programs looked at for an operator before the next is drawn
_NOTING = Path(__file__).with_name("variables.py")
_PATIENCE = 300  # seconds for a program whose variables are noted


@dataclass(frozen=True)
class Question:
    """A program with a fault that bites, or without one."""

    program: Program
    source: str
    operator: Operator | None = None
    planted: Planted | None = None
    bite: Bite | None = None


def questions(seed: str, programs: list[Program], operators: list[str]) -> Iterator[Question]:
    """Faulty ones without end, each of them as it is found to bite; operators take turns in a drawn order."""
    chance = random.Random(seed)
    taken: set[str] = set()
    while True:
        order = list(operators)
        chance.shuffle(order)
        found = 0
        for name in order:
            for question in _drawn(chance, OPERATORS[name], programs, taken):
                taken.add(question.source)
                found += 1
                yield question
        if not found:
            return


def _drawn(chance: random.Random, operator: Operator, programs: list[Program], taken: set[str]) -> Iterator[Question]:
    """At most one fault of this operator that bites."""
    for program in chance.sample(programs, len(programs))[:_TRIES]:
        places = [p for p in _places(operator, program) if p.source not in taken]
        if not places:
            continue
        planted = chance.choice(places)
        sound = sound_runs(program)
        if sound is None:
            continue
        bite = bites(sound, real_run(program, planted.source), operator.harm)
        if bite and not _does_not_fit(planted, bite):
            yield Question(program, planted.source, operator, planted, bite)
            return


def _places(operator: Operator, program: Program) -> list[Planted]:
    """Where the operator applies; a program is run once to know its variables."""
    source = Source(program.source, names_of(program))
    return [p for p in operator.plant(source) if p.source != source.text and _compiles(p.source)]


def _does_not_fit(planted: Planted, bite: Bite) -> bool:
    """Whether lines that were added raise by themselves: the operator took a variable for what it is not."""
    raised = bite.line is not None and 0 <= bite.line - planted.line < planted.lines
    return bite.kind == "crash" and raised and planted.change.startswith("added")


def names_of(program: Program) -> dict[str, object]:
    """What the program's variables hold when it runs; empty where that takes too long."""
    kept = cached("names", program.source, *program.arguments, _NOTING.read_text(encoding="utf-8"))
    if not kept.exists():
        kept.write_text("{}", encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(subprocess.TimeoutExpired):
            script = Path(folder, program.path.name)
            script.write_text(program.source, encoding="utf-8")
            command = [sys.executable, str(_NOTING), str(kept), str(script), *program.arguments]
            subprocess.run(
                command, cwd=folder, env=program.environment, timeout=_PATIENCE, capture_output=True, check=False
            )
    return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _compiles(source: str) -> bool:
    try:
        compile(source, "<planted>", "exec")
    except SyntaxError:
        return False
    return True
