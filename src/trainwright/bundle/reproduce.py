"""The smallest script that shows the same finding: candidates, each run in a process of its own, and cut down."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwright.bundle.look import HAND_OVER
from trainwright.bundle.source import Statement, needed, read_statements, smaller, text_of
from trainwright.bundle.values import DRAW, IMPORTS
from trainwright.core import Place, Stage
from trainwright.core.report import Report, from_dict
from trainwright.options import DEFAULT_BUDGET

# A script for others to read.
MOST_LINES = 60
# Methods that train, or take part in it.
_TRAINS = frozenset({"train", "fit", "backward", "step", "apply_gradients", "train_on_batch"})
# Seconds that a candidate may train for, and that the start of its frameworks may take.
RUN_SECONDS, START_SECONDS = 20.0, 90.0


@dataclass(frozen=True, kw_only=True)
class SameFinding:
    """What a candidate must show again."""

    rule: str = ""
    """The name of the rule; empty: an exception."""
    error: str = ""
    message: str = ""
    places: tuple[Place, ...] = ()
    """Lines of the user's code that take part."""
    stage: Stage | None = None

    def is_shown(self, report: Report | None) -> bool:
        """Whether a report shows it."""
        if report is None:
            return False
        if self.rule:
            return any(finding.name == self.rule for finding in report.findings)
        raised = report.failure
        return raised is not None and raised.type == self.error and _alike(raised.message, self.message)


def seen_in(report: Report) -> SameFinding | None:
    """What a report names first: the finding, otherwise the exception; None if it names neither."""
    begins = (report.begins,) if report.begins else ()
    first = report.first_cause
    if first is not None:
        return SameFinding(
            rule=first.name, places=(*((first.where,) if first.where else ()), *begins), stage=first.stage
        )
    if report.failure is not None:
        where = (report.failure.where,) if report.failure.where else ()
        return SameFinding(error=report.failure.type, message=report.failure.message, places=(*where, *begins))
    return None


@dataclass(kw_only=True)
class Search:
    """Looks for the smallest script until its time is over."""

    script: Path
    arguments: Sequence[str]
    seen: SameFinding
    seconds: float
    say: Callable[[str], None]
    redact: Callable[[str], str] = str
    """Takes what is private out of a script before it is tried."""
    tried: int = 0
    outlines: dict[str, dict[str, str]] = field(default_factory=dict)
    """The script's data, as `outline` and `rows`, by name."""
    _started: float = field(default_factory=time.monotonic)

    @property
    def rehearses(self) -> bool:
        """Whether the finding is one of the whole run."""
        return self.seen.stage == Stage.REHEARSAL

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - (time.monotonic() - self._started)

    def run(self) -> tuple[str, str]:
        """The smallest script found, and in words what was done; the script is empty if none shows the finding."""
        try:
            statements = self._read()
        except (SyntaxError, OSError, UnicodeDecodeError) as error:
            return "", f"the script could not be read ({type(error).__name__})"
        values = self._look(statements)
        self.outlines = {name: by for name, by in values.items() if "outline" in by}
        lines = [(str(Path(p.file).resolve()), p.in_text().line) for p in self.seen.places]
        places = [s for s in statements if any(s.holds(*line) for line in lines)]
        if self.seen.rule or all(s.is_definition for s in places):
            places += [s for s in _train(statements) if s not in places]
        if not places:
            return "", "the finding names no line of the script"
        ways = [
            ("made-up values", _with_values(statements, values, places)),
            ("the script's own values", needed(statements, places)),
            ("all of the script's statements", statements),
        ]
        if self.rehearses:  # made-up labels do not follow from made-up inputs: nothing could be learned of them
            ways = ways[1:]
        failed: set[str] = set()
        for what, chosen in ways:
            text = text_of(chosen)
            if text in failed:
                continue
            if self.left < 0 and self.tried:
                return "", f"the time was over after {self.tried} candidates; none showed it"
            self.say(f"trying a script with {what}")
            if self._shows(chosen):
                return self._cut(chosen, what)
            failed.add(text)
        return "", f"none of {self.tried} candidates shows it"

    def _read(self) -> list[Statement]:
        from trainwright.seams.scripts.notebook import text_of as notebook_text

        text = notebook_text(self.script) if self.script.suffix == ".ipynb" else self.script.read_text("utf-8")
        folders = [
            Path(f)
            for f in os.environ.get("PYTHONPATH", "").split(os.pathsep)
            if f and not (Path(f) / "trainwright").is_dir()
        ]
        return read_statements(text or "", self.script, [*folders, Path.cwd()])

    def _cut(self, chosen: list[Statement], what: str) -> tuple[str, str]:
        """The script cut down while there is time; if it is short, nothing is left out but what is easily seen."""
        if not self.rehearses:  # what a whole run shows may have another cause once a statement is gone
            chosen = smaller(chosen, lambda fewer: self.left > 0 and self._shows(fewer))
        shown = f"the rule {self.seen.rule}" if self.seen.rule else self.seen.error
        head = f"# Shows {shown}, with {what}; cut down from a longer script."
        text = self.redact(f"{head}\n{text_of(chosen)}")
        lines = text.count("\n")
        long = f"; {lines} lines, more than the {MOST_LINES} that it should have" if lines > MOST_LINES else ""
        return text, f"with {what}, found after {self.tried} {'run' if self.tried == 1 else 'runs'}{long}"

    def _shows(self, chosen: list[Statement]) -> bool:
        self.tried += 1
        with tempfile.TemporaryDirectory(prefix="trainwright-") as folder:
            file = Path(folder) / "reproduce.py"
            file.write_text(self.redact(text_of(chosen)), "utf-8")
            data = self._check(file)
            return self.seen.is_shown(from_dict(data) if data else None)

    def _look(self, statements: Sequence[Statement]) -> dict[str, dict[str, str]]:
        """The script's values, told; none if it does not come to its training."""
        self.say("looking at the script's values")
        texts = [s.text for s in statements]
        first = sum(getattr(s.node, "module", "") == "__future__" for s in statements)
        request = {
            "script": str(self.script),
            "text": "\n".join([*texts[:first], HAND_OVER, *texts[first:]]),
            "arguments": list(self.arguments),
            "names": sorted({n for s in statements if not s.is_import and not s.is_definition for n in s.binds}),
        }
        with tempfile.TemporaryDirectory(prefix="trainwright-") as folder:
            asked, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
            asked.write_text(json.dumps(request), "utf-8")
            return _answer(["trainwright.bundle.look", str(asked), str(answer)], answer, None, RUN_SECONDS)

    def _check(self, script: Path) -> dict[str, Any]:
        """The report of a check; empty if it does not come to an end."""
        answer = script.with_name("report.json")
        seconds = DEFAULT_BUDGET if self.rehearses else RUN_SECONDS
        words = ["trainwright", "check", "--budget", str(seconds), "--json", str(answer), "--", str(script)]
        return _answer(words, answer, script.parent, 3 * seconds)


def _answer(words: Sequence[str], answer: Path, folder: Path | None, seconds: float) -> dict[str, Any]:
    """What a module of ours writes into a file; empty if it does not come to an end."""
    with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
        subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds + START_SECONDS,
            check=False,
        )
        found: dict[str, Any] = json.loads(answer.read_text("utf-8"))
        return found
    return {}


def _with_values(
    statements: Sequence[Statement], values: dict[str, dict[str, str]], places: Sequence[Statement]
) -> list[Statement]:
    """What the places need, with the last value of each name of data written out."""
    last = max(statements.index(s) for s in places)
    known = {name: by["made"] for name, by in values.items() if "made" in by}
    final = {n: i for i, s in enumerate(statements[: last + 1]) for n in s.binds if n in known}
    made = {n for n in final if f"{DRAW}." in known[n]}
    changed, wanted = list[Statement](), list[Statement]()
    for i, one in enumerate(statements):
        new = [one]
        is_last = bool(one.binds) and all(final.get(n) == i for n in one.binds) and not _is_written_out(one)
        if is_last and (one not in places or one.binds <= made):
            lines = [ast.parse(f"{n} = {known[n]}").body[0] for n in sorted(one.binds)]
            new = [Statement(ast.copy_location(line, one.node), one.file) for line in lines]
        elif one not in places and not one.binds and any(final[n] < i for n in one.changes & made):
            new = []  # its effect is in the value that is written out before it
        changed += new
        wanted += new if one in places else []
    chosen = needed(changed, wanted)
    if not any(s not in statements for s in chosen):
        return chosen
    head = [Statement(ast.parse(line).body[0]) for line in IMPORTS]
    first = next((i for i, s in enumerate(chosen) if not s.is_import), len(chosen))
    return [*chosen[:first], *head, *chosen[first:]]


def _is_written_out(one: Statement) -> bool:
    """Whether it is no assignment, or its value is a literal already."""
    if not isinstance(one.node, ast.Assign | ast.AnnAssign):
        return not isinstance(one.node, ast.AugAssign)
    return one.node.value is not None and not any(isinstance(n, ast.Name) for n in ast.walk(one.node.value))


def _train(statements: Sequence[Statement]) -> list[Statement]:
    """The statements that train, or call a function that does."""
    functions = {n for s in statements if s.is_definition and _calls(s, _TRAINS) for n in s.binds}
    return [
        s for s in statements if not s.is_definition and (_calls(s, _TRAINS) or (functions & s.loads and not s.binds))
    ]


def _calls(one: Statement, methods: frozenset[str]) -> bool:
    calls = (n.func for n in ast.walk(one.node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr in methods for f in calls)


def _alike(message: str, other: str) -> bool:
    """Whether two messages say the same of other numbers."""
    first, second = (re.sub(r"\d+", "0", m.strip().partition("\n")[0]) for m in (message, other))
    return first == second
