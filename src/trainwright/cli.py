"""The command line. Nothing here imports a framework: `--help` answers at once."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.text import Text

from trainwright import __version__
from trainwright.errors import ScriptFailed, TrainwrightError

if TYPE_CHECKING:
    from trainwright.core.report import Report

# What shells give for a program ended by Ctrl-C.
INTERRUPTED = 130

app = App(
    name="trainwright",
    version=__version__,
    version_flags=["--version"],
    help="Walk a training script's pipeline before the long run; name the first cause, with a proven fix.",
    help_epilogue="""Examples:

    trainwright check train.py --epochs 3      walk train.py, given its own arguments
    trainwright check --json report.json train.py
    trainwright run train.py                   check it; if nothing is wrong, train
    python train.py 2>&1 | trainwright explain -
""",
    result_action="return_value",
)

Ignore = Annotated[list[str] | None, Parameter(name="--ignore", help="A rule's name; may be given several times.",
                                               negative=())]  # fmt: skip
Budget = Annotated[float, Parameter(name="--budget", help="Seconds for the walk itself.")]
Seed = Annotated[int, Parameter(name="--seed", help="Seed of the walk's experiments.")]
Json = Annotated[
    str | None,
    Parameter(
        name="--json", allow_leading_hyphen=True, help='Write the report as JSON; "-" is standard output.'
    ),
]
Html = Annotated[
    str | None,
    Parameter(
        name="--html", allow_leading_hyphen=True, help='Write the report as a page; "-" is standard output.'
    ),
]
Module = Annotated[
    bool, Parameter(name="-m", help="SCRIPT is a module's name, as in python -m.", negative=())
]
Tokens = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]


@app.command
def check(
    script: Annotated[str, Parameter(help="The training script (or module, with -m).")],
    *arguments: Tokens,
    m: Module = False,
    json: Json = None,
    html: Html = None,
    budget: Budget = 60.0,
    seed: Seed = 0,
    ignore: Ignore = None,
    repair: Annotated[bool, Parameter(name="--repair", negative="--no-repair",
                                      help="Mend faults in memory and walk on.")] = True,
) -> int:  # fmt: skip
    """Walk a script's pipeline and stop before training.

    The script runs unmodified until it would train. What follows SCRIPT is the script's own.
    Exit status: 0 nothing found above a note; 1 findings, or the script failed; 2 wrong usage, no training
    reached, or a failure of Trainwright itself; 130 interrupted before anything was found.
    """
    return _walk(script, arguments, m, json, html, budget, seed, ignore, repair, train=False)


@app.command
def run(
    script: Annotated[str, Parameter(help="The training script (or module, with -m).")],
    *arguments: Tokens,
    m: Module = False,
    json: Json = None,
    html: Html = None,
    budget: Budget = 60.0,
    seed: Seed = 0,
    ignore: Ignore = None,
) -> int:
    """Check a script; if no error is found, put everything back and let it train for real.

    The losses and weights are bit for bit those of `python script.py`.
    """
    return _walk(script, arguments, m, json, html, budget, seed, ignore, True, train=True)


def _walk(script: str, arguments: tuple[str, ...], module: bool, json: str | None, html: str | None, budget: float,
          seed: int, ignore: list[str] | None, repair: bool, *, train: bool) -> int:  # fmt: skip
    from trainwright.errors import UsageError
    from trainwright.options import Options, with_settings
    from trainwright.report import html as page
    from trainwright.report import json as data
    from trainwright.report import terminal
    from trainwright.walk.run import check_script

    options = Options(budget=budget, seed=seed, ignore=tuple(ignore or ()), repair=repair)
    options = with_settings(options, Path.cwd() / "x" if module else Path(script))
    for target in (json, html):
        _writable(target)
    if json == html == "-":
        raise UsageError("--json and --html cannot both be standard output; name a file for one of them.")
    to_stdout = "-" in (json, html)
    console = Console(stderr=to_stdout)
    reports: list[Report] = []

    def done(report: Report) -> None:
        reports.append(report)
        say("")
        terminal.show(report, console)

    with _progress() as say, _own_stdout(to_stdout) as stdout:
        try:
            check_script(script, arguments, options, module=module, train=train, say=say, done=done)
        finally:  # what was found is written even when the real training raises
            if reports:
                _write(json, data.render(reports[-1]), stdout)
                _write(html, page.render(reports[-1]) if html else "", stdout)
    return _status(reports)


def _status(reports: list[Report]) -> int:
    if not reports:  # one of several processes, and not the one that walks
        return 0
    if any(r.internal_errors for r in reports):
        return 2
    if any(r.faulty for r in reports):
        return 1
    if reports[-1].message.startswith("Interrupted"):
        return INTERRUPTED
    return 0 if any(s.status == "passed" for s in reports[-1].stages) else 2


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is going on, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    # Started by the first thing said: until the walk begins, the terminal is the script's.
    status = console.status("")

    def say(text: str) -> None:
        if text:
            status.start()
            status.update(text)
        else:
            status.stop()

    try:
        yield say
    finally:
        status.stop()


@contextlib.contextmanager
def _own_stdout(alone: bool) -> Iterator[TextIO]:
    """Standard output, for the report; if it is to be alone there, all else that is written goes to standard error.

    The file descriptor is moved, so that what a script's child processes and libraries write moves too, and it
    stays moved: what a script prints at its exit must not follow the report.
    """
    if not alone:
        yield sys.stdout
        return
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stdout:
        os.dup2(2, 1)
        yield stdout


def _writable(target: str | None) -> None:
    from trainwright.errors import UsageError

    if not target or target == "-":
        return
    if not Path(target).absolute().parent.is_dir():
        raise UsageError(f"{target} must lie in an existing folder; {Path(target).parent} does not exist.")
    if Path(target).is_dir():
        raise UsageError(f"{target} must be a file to write the report to; it is a folder.")


def _write(target: str | None, text: str, stdout: TextIO) -> None:
    if target == "-":
        stdout.write(text)
    elif target:
        Path(target).write_text(text, encoding="utf-8")


@app.command
def explain(
    what: Annotated[
        str,
        Parameter(allow_leading_hyphen=True, help="A rule's name or code, an error message, or - for stdin."),
    ],
) -> int:
    """Print a rule's page, or the rules that know an error message or traceback."""
    from trainwright.explain import explain as pages

    text = sys.stdin.read() if what == "-" else what
    found, shown = pages(text)
    Console().print(shown)
    return 0 if found else 1


@app.command
def rules() -> int:
    """List the rules."""
    from trainwright.explain import table

    Console().print(table())
    return 0


# Options of check and run that take a value, to know which word is the script.
_VALUED = ("--json", "--html", "--budget", "--seed", "--ignore")


def split_arguments(words: Sequence[str]) -> list[str]:
    """The command line with `--` before SCRIPT: what follows it is the script's own, even a `--json`."""
    if not words or words[0] not in ("check", "run"):
        return list(words)
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        at += 2 if words[at] in _VALUED else 1
    if at >= len(words) or words[at] == "--":
        return list(words)
    return [*words[:at], "--", *words[at:]]


def main() -> None:
    """The entry point: exit statuses, and our own errors as one line."""
    try:
        status = app(split_arguments(sys.argv[1:]), exit_on_error=False)
    except CycloptsError:  # shown by cyclopts
        sys.exit(2)
    except ScriptFailed as error:
        _show_users(error.__cause__ or error)
        sys.exit(1)
    except TrainwrightError as error:
        Console(stderr=True).print(Text.assemble(("trainwright: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:
        traceback.print_exc()
        Console(stderr=True).print(
            "trainwright: this is a failure of Trainwright itself, not of your script. Please report it.",
            soft_wrap=True,
        )
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _show_users(error: BaseException) -> None:
    """The traceback of an exception of the script's, as Python would print it, without the frames before it."""
    from trainwright.seams.place import is_users

    link = error.__traceback__
    while link is not None and not is_users(link.tb_frame.f_code.co_filename):
        link = link.tb_next
    traceback.print_exception(type(error), error, link)
