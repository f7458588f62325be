"""The smallest script that shows the same finding: candidates, each tried by a further run, and cut down by statements."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.bundle.source import Statement, list_needed, smaller, text_of
from trainwright.bundle.values import DRAW, IMPORTS, Values, call_to_tell
from trainwright.core import Report, Stage

# A script for others to read.
MOST_LINES = 60
# Methods that train, or take part in it.
_TRAINS = frozenset({"train", "fit", "backward", "step", "apply_gradients", "train_on_batch"})


def is_shown_again(before: Report, after: Report) -> bool:
    """Whether a report shows what another one names first: the finding, otherwise the exception."""
    if before.first_cause is not None:
        return any(finding.name == before.first_cause.name for finding in after.findings)
    first, again = before.failure, after.failure
    return first is not None and again is not None and first.type == again.type and _alike(first.message, again.message)


def text_to_tell_values(statements: Sequence[Statement]) -> str:
    """A copy of the script that ends where its training begins, or where it stops before, and tells the values of its names."""
    names = sorted({n for s in statements if not s.is_import and not s.is_definition for n in s.binds})
    trains = _train(statements)
    before = [s.node for s in statements[: statements.index(trains[0]) if trains else len(statements)]]
    futures = [node for node in before if getattr(node, "module", "") == "__future__"]
    rest = [node for node in before if node not in futures]
    tell = ast.parse(call_to_tell(names)).body
    ended = [ast.Try(body=rest, handlers=[], orelse=[], finalbody=tell)] if rest else tell
    return ast.unparse(ast.Module([*futures, *ended], []))


@dataclass(kw_only=True)
class Search:
    """Looks for the smallest script until its time is over."""

    report: Report
    """Of the script; it names a first cause or an exception."""
    seconds: float
    check: Callable[[str], Report]
    """Runs a script of this text."""
    say: Callable[[str], None]
    redact: Callable[[str], str] = str
    """Takes what is private out of a script before it is tried."""
    tried: int = 0
    _started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - (time.monotonic() - self._started)

    @property
    def is_of_run(self) -> bool:
        """Whether only a whole run shows it."""
        return self.report.first_cause is not None and self.report.first_cause.stage == Stage.REHEARSAL

    def run(self, statements: Sequence[Statement], values: Values) -> tuple[str, str]:
        """The smallest script found, and in words what was done; the script is empty if none shows the finding."""
        seen = self.report.first_cause or self.report.failure
        where = (seen.where if seen is not None else None, self.report.begins)
        lines = [(str(Path(p.file).resolve()), p.in_text().line) for p in where if p is not None]
        places = [s for s in statements if any(s.holds(*line) for line in lines)]
        if self.report.first_cause or all(s.is_definition for s in places):
            places += [s for s in _train(statements) if s not in places]
        if not places:
            return "", "the finding names no line of the script"
        ways = [
            ("made-up values", _with_values(statements, values, places)),
            ("the script's own values", list_needed(statements, places)),
            ("all of the script's statements", list(statements)),
        ]
        failed: set[str] = set()
        # Made-up labels do not follow from made-up inputs: nothing could be learned of them in a whole run.
        for what, chosen in ways[1:] if self.is_of_run else ways:
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

    def _cut(self, chosen: list[Statement], what: str) -> tuple[str, str]:
        """The script cut down while there is time; if it is short, nothing is left out but what is easily seen."""
        if not self.is_of_run:  # what a whole run shows may have another cause once a statement is gone
            chosen = smaller(chosen, lambda fewer: self.left > 0 and self._shows(fewer))
        first, failure = self.report.first_cause, self.report.failure
        shown = f"the rule {first.name}" if first else failure.type if failure else ""
        text = self.redact(f"# Shows {shown}, with {what}; cut down from a longer script.\n{text_of(chosen)}")
        lines = text.count("\n")
        long = f"; {lines} lines, more than the {MOST_LINES} that it should have" if lines > MOST_LINES else ""
        return text, f"with {what}, found after {self.tried} {'run' if self.tried == 1 else 'runs'}{long}"

    def _shows(self, chosen: list[Statement]) -> bool:
        self.tried += 1
        return is_shown_again(self.report, self.check(self.redact(text_of(chosen))))


def _with_values(statements: Sequence[Statement], values: Values, places: Sequence[Statement]) -> list[Statement]:
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
    chosen = list_needed(changed, wanted)
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
