"""`trainwright bundle`: checks a script, looks for the smallest script that shows the finding, and writes the folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwright.bundle.blame import blame
from trainwright.bundle.page import MARK, environment, page, without_data
from trainwright.bundle.redact import Redactor
from trainwright.bundle.reproduce import Search, seen_in
from trainwright.core.report import from_dict
from trainwright.errors import ReadError, UsageError, WriteError
from trainwright.start.program import Program

PAGE, SCRIPT, REPORT = "bundle.md", "reproduce.py", "report.json"


def bundle_program(
    program: Program,
    folder: Path,
    words: Sequence[str],
    *,
    seconds: float,
    with_data: bool,
    say: Callable[[str], None],
) -> int:
    """Write the bundle of a script; returns the exit status.

    Args:
        words: options of the check.
        seconds: time for the search of the smallest script.
        with_data: values of rows are not left out.
    """
    if program.launcher or program.module:
        raise UsageError("bundle takes a script or a notebook; name the one that trains.")
    _check_folder(folder)
    data = _checked(program, words)
    report = from_dict(data)
    seen = seen_in(report)
    redact = Redactor(folder=Path(program.script).absolute().parent).redact
    script, what, values = "", "nothing was found", dict[str, str]()
    if seen is not None:
        search = Search(
            script=Path(program.script), arguments=program.arguments, seen=seen, seconds=seconds, say=say, redact=redact
        )
        script, what = search.run()
        values = {name: told["rows" if with_data else "outline"] for name, told in search.outlines.items()}
    data = data if with_data else without_data(data)
    lines = page(from_dict(data), blame(report), script, what, values)
    data["environment"] = environment(report)
    texts = {PAGE: redact("\n".join(lines) + "\n"), REPORT: json.dumps(_redacted(data, redact), indent=2) + "\n"}
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


def _checked(program: Program, words: Sequence[str]) -> dict[str, Any]:
    """The report of `check`, which shows it on this terminal, too."""
    with tempfile.TemporaryDirectory(prefix="trainwright-") as scratch:
        answer = Path(scratch) / REPORT
        command = [sys.executable, "-m", "trainwright", "check", "--json", str(answer), *words, "--"]
        subprocess.run([*command, program.script, *program.arguments], check=False)
        try:
            found: dict[str, Any] = json.loads(answer.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ReadError("the check made no report, so there is nothing to bundle.") from error
        return found


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCRIPT).unlink(missing_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise WriteError(f"the bundle cannot be written to {folder}: {error}") from error


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """Plain data, with every text redacted by itself: in JSON, quotes and backslashes are written differently."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(v, redact) for v in value]
    if isinstance(value, dict):
        return {redact(k): _redacted(v, redact) for k, v in value.items()}
    return value
