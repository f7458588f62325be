"""Run every script of the tests once, watched, ask the record and the looks alone (no check), and keep what was said: exam/covers.json.

    .venv/bin/python -m exam.covers [PATTERN...]     run them, or those whose names match; store the rows; print the table
    .venv/bin/python -m exam.covers --changed [...]  run again, and print the rows that differ from the stored ones
    .venv/bin/python -m exam.covers --table          print the table of the stored rows

A row is a script, the rules that it announces with their lines, the findings of the report with theirs, the verdict, and the
exception that stopped it. What a later step deletes is lost where a row changes. Runs are cached by their text and by the
product's code, so that an interrupted command goes on where it was.

`successors` of the file are written by hand: a rule, and the findings that may stand in its place as the first cause.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from exam.oracle import cached
from exam.patches import patches
from exam.programs import ENVIRONMENT, EXAM, ROOT, TESTS, Program, programs
from tests.helpers.twins import find_scripts, write_script
from trainwright.core import Place, Report
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.process import SHORT_OF_MEMORY, Rehearsal, Server
from trainwright.rehearsal.record import Record

STORED = EXAM / "covers.json"
# Of a run from its first update on, and on the wall for one that sleeps.
_SECONDS, _PATIENCE = 15.0, 90.0
_EXPECT = re.compile(r"#\s*(?:expect|finds):\s*([a-z-]+)")
# Stands for the rule where none claims the fault.
NO_RULE = "no-rule"
# Modules that a process has imported when it forks runs. TensorFlow survives a fork as long as it has computed nothing.
_TORCH = ("torch", "sklearn.metrics", "sklearn.datasets", "pandas", "datasets", "transformers.trainer", "accelerate",
          "lightning")  # fmt: skip
_KERAS = ("tensorflow", "keras", "sklearn.datasets", "pandas")
_UNJUDGED = ("does not learn", "learns in part")
COLUMNS = ("own name", "another at its line", "verdict or stop at its line", "another elsewhere", "a note", "nothing")


@dataclass(frozen=True)
class Asked:
    """A script to run."""

    name: str
    program: Program
    expects: tuple[tuple[str, int | None], ...] = ()
    """Rules, each with its line; alternatives are joined by `|`."""
    text: str = ""
    """Where it is not the program's own."""
    make: Callable[[Path], Path] | None = None
    """Writes it, with its files, into a folder, and gives its path."""


@dataclass(frozen=True)
class Row:
    """What the review says of a script."""

    script: str
    expects: list[list[Any]]
    found: list[list[Any]]
    """Name, line and severity of each finding."""
    verdict: str
    stops: list[Any] | None
    """The exception's type and its line, or how its process ended."""


def scripts() -> Iterator[Asked]:
    """All of them, those of the rules first."""
    folders = ("contract/*/*.py", "rules/*/*/*.py", "loops/*/*.py", "fit/*/*.py", "seen/*.py", "evaluation_mended/*.py")
    paths = [path for pattern in folders for path in find_scripts(TESTS, pattern)]
    for path in sorted(paths, key=lambda p: p.stem not in ("bad", "good") and p.parts[-4] == "rules"):
        name = path.relative_to(ROOT).as_posix()
        written = write_script(path)
        yield Asked(name, Program(name, written), _announced(written.read_text("utf-8")))
    yield from _hidden()
    for file in ("known_faults.patch", "author_faults.patch"):
        for patch in patches(EXAM / "idioms" / file):
            program = Program(patch.name, EXAM / "idioms" / patch.program)
            yield Asked(f"exam/idioms/{file}/{patch.name}", program, _announced(patch.text), patch.text)
    yield from _blind()
    yield from (Asked(one.path.relative_to(ROOT).as_posix(), one) for one in programs())


def _announced(text: str) -> tuple[tuple[str, int | None], ...]:
    """What comments announce; of those on a line of their own only if no other does."""
    lines = list(enumerate(text.split("\n"), 1))
    on_code = [(m[1], n) for n, line in lines if (m := _EXPECT.search(line)) and not line.startswith("#")]
    heads = [(m[1], None) for _, line in lines if (m := _EXPECT.match(line)) and m[1] != "nothing"]
    planted = [(NO_RULE, n) for n, line in lines if "# FAULT" in line]
    return tuple(on_code or heads or planted)


def _hidden() -> Iterator[Asked]:
    """The faults in files of tests/checks/test_hidden_faults.py: its tests are called up to their check."""
    sys.path[:0] = [p for p in (str(TESTS / "helpers"),) if p not in sys.path]
    from tests.checks import test_hidden_faults as module

    for name, test in sorted(vars(module).items()):
        if name.startswith("test_") and name != "test_healthy_files_are_silent":
            texts = (c for c in test.__code__.co_consts if isinstance(c, str))
            rule = next(text for text in texts if re.fullmatch(r"[a-z]+(-[a-z]+)+", text))
            program, make = Program(name, Path(module.__file__ or "")), functools.partial(_made, module, test)
            yield Asked(f"tests/hidden/{name}.py", program, ((rule, None),), make=make)


def _made(module: Any, test: Callable[[Path], None], folder: Path) -> Path:
    made: list[Path] = []
    before, module._first = module._first, lambda script, *_: made.append(script)
    test(folder)
    module._first = before
    return made[0]


def _blind() -> Iterator[Asked]:
    for answers in sorted((EXAM / "blind").glob("*/answers.json")):
        folder, written = answers.parent, json.loads(answers.read_text("utf-8"))
        of = {a["script"]: Program(a["script"], folder / a["script"], tuple(a.get("arguments", ()))) for a in written}
        for a in written:
            right = "|".join(a.get("named", ())) or NO_RULE
            expects = ((right, a["line"] or None),) if a["faulty"] else ()
            yield Asked(f"exam/blind/{folder.name}/{a['script']}", of[a["script"]], expects)
        for patch in patches(folder / "fixed.patch"):
            yield Asked(f"exam/blind/{folder.name}/{patch.name}", of[patch.program], text=patch.text)


class Runner:
    """Runs scripts one after the other, in forks of a process that has imported their framework. Use it as a context."""

    def __init__(self) -> None:
        self._modules: tuple[str, ...] = ()
        self._server: Server | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.__exit__()
        self._server, self._modules = None, ()

    def row(self, asked: Asked) -> Row:
        """Its row, from the cache if the same was run before."""
        file = cached("covers", asked.name, asked.text or asked.program.source, *asked.program.arguments, _engine())
        if not file.exists():
            row = self._run(asked)
            file.write_text(json.dumps(asdict(row)), encoding="utf-8")
        return Row(**json.loads(file.read_text("utf-8")))

    def _run(self, asked: Asked) -> Row:
        with tempfile.TemporaryDirectory() as temporary:
            script = asked.make(Path(temporary)) if asked.make else asked.program.path
            if asked.text:
                script = Path(temporary, Path(asked.name).name)
                script.write_text(asked.text, encoding="utf-8")
            program = replace(asked.program, path=script, changes=())
            until = time.monotonic() + _PATIENCE
            with Rehearsal(
                str(script), program.arguments, seconds=_SECONDS, environment=program.environment,
                folder=script.parent if asked.name.startswith("tests") else Path(temporary), server=self._serve(program),
            ) as rehearsal:  # fmt: skip
                record = rehearsal.wait(until=lambda: time.monotonic() > until)
        if record.ended.hindrance == SHORT_OF_MEMORY:
            raise RuntimeError(SHORT_OF_MEMORY)
        return _row(asked, record, script)

    def _serve(self, program: Program) -> Server | None:
        """The process for its framework; None where it needs another environment."""
        is_other = program.environment != {**ENVIRONMENT, "KERAS_BACKEND": "tensorflow"}
        if (is_other and program.framework == "keras") or "KERAS_BACKEND" in program.source:
            return None
        modules = _KERAS if program.framework == "keras" else _TORCH
        if modules != self._modules:
            self.__exit__()
            self._server, self._modules = Server(modules, program.environment).__enter__(), modules
        return self._server


@functools.cache
def _engine() -> str:
    """Changes with the product's code."""
    files = sorted((ROOT / "src" / "trainwright").rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def _row(asked: Asked, record: Record, script: Path) -> Row:
    def line(where: Place | None) -> int | None:
        return where.line if where is not None and Path(where.file).name == script.name else None

    report = judge_run(Report(script=script.name), record, Options())
    failure, ended = record.ended.failure, record.ended
    died = ended.own_error or ended.hindrance or (f"status {ended.status}" if ended.status else "")
    found = [[f.name, line(f.where), str(f.severity)] for f in report.findings]
    return Row(
        script=asked.name,
        expects=[list(one) for one in asked.expects],
        found=found + [["own error", None, e] for e in report.internal_errors],
        verdict=str(report.verdict.shown) if report.verdict is not None else "",
        stops=[failure.type, line(failure.where)] if failure is not None else [died, None] if died else None,
    )


def judge(row: Row, rule: str, line: int | None) -> str:
    """The column of a bad script: the most that the review says of an announced fault."""
    own = rule.split("|")
    others = [(name, at) for name, at, severity in row.found if severity != "note" and name != "script-stopped"]
    if any(name in own for name, *_ in row.found):
        return COLUMNS[0]
    if any(at == line for _, at in others if at is not None):
        return COLUMNS[1]
    if row.verdict in _UNJUDGED or (row.stops is not None and row.stops[1] == line and line is not None):
        return COLUMNS[2]
    return COLUMNS[3] if others or row.stops else COLUMNS[4] if row.found else COLUMNS[5]


def table(rows: Sequence[Row]) -> str:
    """Rule by column, of the bad scripts; then what is said on the good ones."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for rule, line in row.expects:
            counts.setdefault(rule.partition("|")[0], Counter())[judge(row, rule, line)] += 1
    total: Counter[str] = sum(counts.values(), Counter())
    lines = [f"| rule | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [
        f"| {rule} | {' | '.join(str(n[c] or '') for c in COLUMNS)} |"
        for rule, n in [*sorted(counts.items()), ("all", total)]
    ]
    good = [row for row in rows if not row.expects]
    said = {row.script: [f"{n}:{at}" for n, at, severity in row.found if severity != "note"] for row in good}
    lines += ["", f"{len(good)} good scripts; {sum(map(bool, said.values()))} with a finding above a note:"]
    lines += [f"  {script}: {', '.join(found)}" for script, found in said.items() if found]
    verdicts = Counter(row.verdict for row in good)
    return "\n".join([*lines, "; ".join(f"{verdict}: {n}" for verdict, n in sorted(verdicts.items()))])


def load() -> tuple[dict[str, list[str]], dict[str, Row]]:
    """The stored successors and rows."""
    if not STORED.exists():
        return {}, {}
    held = json.loads(STORED.read_text("utf-8"))
    return held["successors"], {one["script"]: Row(**one) for one in held["rows"]}


def store(successors: dict[str, list[str]], rows: dict[str, Row]) -> None:
    """Write them, a row a line."""

    def each(ones: Sequence[str]) -> str:
        return "".join(f"\n{one}," for one in ones).removesuffix(",")

    told = each([f"{json.dumps(rule)}: {json.dumps(names)}" for rule, names in sorted(successors.items())])
    lines = each([json.dumps(asdict(rows[name])) for name in sorted(rows)])
    STORED.write_text(f'{{"successors": {{{told}\n}},\n"rows": [{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    """What the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="*", help="of names, as tests/rules/loss/*; all of them without one")
    parser.add_argument("--changed", action="store_true", help="print the rows that differ; store nothing")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    (successors, held), known = load(), {one.name: one for one in scripts()}
    chosen = [o for o in known.values() if not options.pattern or any(fnmatch(o.name, p) for p in options.pattern)]
    chosen.sort(key=lambda o: (o.name.startswith(("exam", "tests/healthy")), o.program.framework == "keras"))
    rows = {name: row for name, row in held.items() if name in known}
    with Runner() as runner:
        for number, one in enumerate(chosen if not options.table else (), 1):
            try:
                row = runner.row(one)
            except RuntimeError as error:  # the next script gets another process
                runner.__exit__()
                print(f"{one.name}: {error}", file=sys.stderr)
                continue
            if options.changed and row != held.get(one.name):
                before = json.dumps(asdict(held[one.name])) if one.name in held else "no row"
                print(f"- {before}\n+ {json.dumps(asdict(row))}", flush=True)
            rows[one.name] = row
            print(f"{number}/{len(chosen)} {one.name}: {row.verdict}", file=sys.stderr, flush=True)
            if not options.changed:
                store(successors, rows)
    if not options.changed:
        print(table([rows[one.name] for one in chosen if one.name in rows]))


if __name__ == "__main__":
    main()
