"""The command line. Nothing here imports a framework: `--help` answers at once."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.console import Console

from trainwright import __version__
from trainwright.errors import TrainwrightError

if TYPE_CHECKING:
    from trainwright.core.report import Report
    from trainwright.options import Options

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
    str | None, Parameter(name="--json", allow_leading_hyphen=True, help='Write the report as JSON; "-" is standard output.')
]
Html = Annotated[
    str | None, Parameter(name="--html", allow_leading_hyphen=True, help='Write the report as a page; "-" is standard output.')
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
    reached, or a failure of Trainwright itself.
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
    from trainwright.options import Options, with_settings
    from trainwright.report import html as page
    from trainwright.report import json as data
    from trainwright.report import terminal
    from trainwright.walk.run import check_script

    options = Options(budget=budget, seed=seed, ignore=tuple(ignore or ()), repair=repair)
    options = with_settings(options, Path.cwd() / "x" if module else Path(script))
    for target in (json, html):
        _writable(target)
    to_stdout = "-" in (json, html)
    console = Console(stderr=to_stdout)

    with _progress() as say, _redirected(to_stdout):
        reports = check_script(
            script, arguments, options, module=module, train=train, say=say,
            done=lambda report: (say(""), terminal.show(report, console))[-1],
        )  # fmt: skip
    _write(json, data.render(reports[-1]))
    _write(html, page.render(reports[-1]) if html else "")
    return _status(reports)


def _status(reports: list[Report]) -> int:
    if any(r.internal_errors for r in reports):
        return 2
    if any(r.faulty for r in reports):
        return 1
    return 0 if any(s.status == "passed" for s in reports[-1].stages) else 2


@contextlib.contextmanager
def _progress() -> Iterator[object]:
    """A line on standard error that says what is going on, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    status = console.status("running the script up to its training call")
    status.start()

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
def _redirected(to_stdout: bool) -> Iterator[None]:
    """Keep the script's own prints out of a report that goes to standard output."""
    if not to_stdout:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _writable(target: str | None) -> None:
    from trainwright.errors import UsageError

    if target and target != "-" and not Path(target).absolute().parent.is_dir():
        raise UsageError(f"{target} must lie in an existing folder; {Path(target).parent} does not exist.")


def _write(target: str | None, text: str) -> None:
    if target == "-":
        sys.stdout.write(text)
    elif target:
        Path(target).write_text(text, encoding="utf-8")


@app.command
def explain(
    what: Annotated[str, Parameter(allow_leading_hyphen=True, help="A rule's name or code, an error message, or - for stdin.")],
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


def main() -> None:
    """The entry point: exit statuses, and our own errors as one line."""
    try:
        status = app(sys.argv[1:])
    except TrainwrightError as error:
        Console(stderr=True).print(f"[bold red]trainwright:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
