"""`trainwright bundle`: checks a script, looks for the smallest script that shows the finding, and writes the folder."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from trainwright.bundle.blame import blame
from trainwright.bundle.page import MARK, environment, page, with_texts, without_data
from trainwright.bundle.redact import Redactor
from trainwright.bundle.reproduce import Search, text_to_tell_values
from trainwright.bundle.source import Statement, read_statements
from trainwright.bundle.values import Values
from trainwright.checking import judge_program, prepare
from trainwright.core import Report
from trainwright.core.report import from_dict
from trainwright.errors import UsageError, WriteError
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.record import Record
from trainwright.report import json as report_json
from trainwright.report import terminal
from trainwright.runs import open_runs
from trainwright.seams.scripts.edited_files import standing_in
from trainwright.seams.scripts.notebook import text_of as notebook_text
from trainwright.start.program import Program

PAGE, SCRIPT, REPORT = "bundle.md", "reproduce.py", "report.json"
# Seconds that a candidate may train for, and that it may take until then.
RUN_SECONDS, START_SECONDS = 20.0, 150.0


def bundle_program(
    program: Program, folder: Path, options: Options, *, seconds: float, with_data: bool, say: Callable[[str], None]
) -> int:
    """Write the bundle of a script; returns the exit status.

    Args:
        options: of the check.
        seconds: time for the search of the smallest script.
        with_data: values of rows are not left out.
    """
    if program.launcher or program.module:
        raise UsageError("bundle takes a script or a notebook; name the one that trains.")
    _check_folder(folder)
    prepare(program, options)
    report = judge_program(program, options, say)
    say("")
    terminal.show(report, Console())
    if report.is_interrupted:
        raise KeyboardInterrupt
    redact = Redactor(folder=Path(program.script).absolute().parent).redact
    script, what, values = "", "nothing was found", Values()
    if report.first_cause is not None or report.failure is not None:
        script, what, values = _search(program, options, report, seconds, say, redact)
    data: dict[str, Any] = json.loads(report_json.render(report))
    data = data if with_data else without_data(data)
    outlines = {name: told["rows" if with_data else "outline"] for name, told in values.items() if "outline" in told}
    lines = page(from_dict(data), blame(report), script, what, outlines)
    data["environment"] = environment(report)
    texts = {PAGE: redact("\n".join(lines) + "\n"), REPORT: json.dumps(with_texts(data, redact), indent=2) + "\n"}
    _write(folder, {**texts, SCRIPT: script} if script else texts)
    say("")
    print(f"{folder / PAGE}: read it, then paste it. {_told(script, what)}")
    return 0


def _told(script: str, what: str) -> str:
    return f"{SCRIPT} shows the same finding, {what}." if script else f"There is no {SCRIPT}: {what}."


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than a bundle."""
    if not folder.exists():
        return
    page_of = folder / PAGE
    is_bundle = page_of.is_file() and page_of.read_text("utf-8", errors="replace").startswith(MARK)
    if not folder.is_dir() or (any(folder.iterdir()) and not is_bundle):
        raise UsageError(f"{folder} is not a bundle and is left as it is; name another folder with --output.")


def _search(
    program: Program,
    options: Options,
    report: Report,
    seconds: float,
    say: Callable[[str], None],
    redact: Callable[[str], str],
) -> tuple[str, str, Values]:
    """The smallest script, what was done in words, and the script's values."""
    try:
        statements = _read(Path(program.script))
    except (SyntaxError, OSError, UnicodeDecodeError) as error:
        return "", f"the script could not be read ({type(error).__name__})", {}
    say("looking at the script's values")
    with _running(program, replace(options, budget=RUN_SECONDS)) as run:
        told = run(text_to_tell_values(statements)).ended.misuse
    values: Values = json.loads(told) if told.startswith("{") else {}
    with tempfile.TemporaryDirectory(prefix="trainwright-") as folder:
        candidate = Path(folder).resolve() / SCRIPT
        candidate.touch()

        def check(text: str) -> Report:
            record = run(text)
            with standing_in({str(candidate): text}):
                return judge_run(Report(script=SCRIPT), record, options)

        search = Search(report=report, seconds=seconds, check=check, say=say, redact=redact)
        short = options if search.is_of_run else replace(options, budget=RUN_SECONDS)
        with _running(Program(script=str(candidate)), short) as run:
            return *search.run(statements, values), values


@contextlib.contextmanager
def _running(program: Program, options: Options) -> Iterator[Callable[[str], Record]]:
    """A function that runs a copy of the script with this text."""
    script = str(Path(program.script).resolve())
    with open_runs(program, options, lambda text: None) as running:

        def run(text: str) -> Record:
            record = running.run({script: text}, repairs=False, patience=START_SECONDS)
            if running.is_interrupted:
                raise KeyboardInterrupt
            return record

        yield run


def _read(script: Path) -> list[Statement]:
    text = notebook_text(script) if script.suffix == ".ipynb" else script.read_text("utf-8")
    folders = [Path(f) for f in os.environ.get("PYTHONPATH", "").split(os.pathsep) if f]
    own = [folder for folder in folders if not (folder / "trainwright").is_dir()]
    return read_statements(text or "", script, [*own, Path.cwd()])


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCRIPT).unlink(missing_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise WriteError(f"the bundle cannot be written to {folder}: {error}") from error
