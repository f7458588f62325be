"""Where a check's report goes: the terminal, files or standard output; and the progress messages before it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from trainwright.console import utf8
from trainwright.errors import UsageError

if TYPE_CHECKING:
    from trainwright.core import Report

# Of --format: modules of `report/`.
FORMATS = ("json", "sarif", "github", "junit", "markdown")


def tell(text: str) -> None:
    """Print a message that is not part of the report, on standard error."""
    if text:
        line = Text.assemble(("trainwright: ", "bold"), text)
        Console(stderr=True, highlight=False).print(line, soft_wrap=True)


def announce(script: str) -> None:
    """Announce the script on a terminal: one line that stays."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        console.print(f"checking {script} …", style="dim", markup=False, soft_wrap=True)


def read_targets(formats: Sequence[str] | None, **files: str | None) -> dict[str, str]:
    """The files to write to by the options that name them; "-" is standard output.

    Args:
        formats: the words behind `--format`, each `NAME` or `NAME=FILE`.

    Raises:
        UsageError: if there is no such format.
    """
    targets = {f"--{name}": file for name, file in files.items() if file}
    for word in formats or ():
        name, _, file = word.partition("=")
        if name in FORMATS:
            targets[f"--format {word}"] = file or "-"
        elif word != "text":  # which is shown in any case
            raise UsageError(f"--format must be text, or {'[=FILE], '.join(FORMATS)}[=FILE]; got {word!r}.")
    return targets


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A progress line on standard error, shown on a terminal only."""
    if not Console(stderr=True).is_terminal:
        yield lambda text: None
        return
    spinner = Spinner("dots", text="starting")
    with Live(
        spinner, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as line:

        def say(text: str) -> None:
            spinner.update(text=text)
            line.start() if text else line.stop()

        yield say


def check_targets(targets: dict[str, str]) -> None:
    """Check that a report can be written to its targets.

    Raises:
        UsageError: if one of them cannot be written to, or two are standard output.
    """
    on_stdout = [option for option, file in targets.items() if file == "-"]
    if len(on_stdout) > 1:
        raise UsageError(f"{' and '.join(on_stdout)} cannot both go to standard output; name a file for one of them.")
    for target in (file for file in targets.values() if file != "-"):
        if not Path(target).absolute().parent.is_dir():
            raise UsageError(f"{target} must be in an existing folder; {Path(target).parent} does not exist.")
        if Path(target).is_dir():
            raise UsageError(f"{target} is a folder; name a file to write the report to.")


def write_all(targets: dict[str, str], report: Report, status: int) -> None:
    """Write a report to its targets, of a check with this exit status."""
    from trainwright import baseline
    from trainwright.fixes.edits import patch
    from trainwright.report import html, json

    if "--diff" in targets and not patch(report):
        is_notebook = report.script.endswith(".ipynb")
        why = "a patch cannot edit a notebook" if is_notebook else "none of these fixes can be written as an edit"
        print(f"trainwright: {why}; {targets['--diff']} is empty.", file=sys.stderr)
    renderers = {"json": json.render, "html": html.render, "diff": patch, "write-baseline": baseline.render}
    for option, target in targets.items():
        name = option.removeprefix("--format ").removeprefix("--").partition("=")[0]
        render = renderers.get(name) or partial(import_module(f"trainwright.report.{name}").render, status=status)
        if target == "-":
            print(utf8(render(report)), end="", flush=True)
        else:
            Path(target).write_text(utf8(render(report)), encoding="utf-8")
