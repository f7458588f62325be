"""`%%check` in a notebook: runs a cell, with its training, in a copy of the notebook's process, or in the notebook's own where
that cannot be copied. The notebook's variables stay untouched."""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any, NoReturn

from trainwright.core import Place, Report
from trainwright.errors import TrainwrightError, UsageError
from trainwright.seams.intercept import install
from trainwright.seams.listening.seen import Construction, seen
from trainwright.seams.loops.found_loops import is_users_object
from trainwright.seams.source.moved_code import watched_names
from trainwright.seams.source.places import cell_numbers, show
from trainwright.seams.source.written import assignment_place, syntax_tree
from trainwright.timing import date_of_now


def register(shell: Any) -> None:
    """Register the magic in a shell."""
    install()  # later cells' imports and objects are observed as a script's are

    def check(line: str, cell: str) -> Report:
        try:
            return check_cell(shell, line, cell)
        except TrainwrightError as error:
            from IPython.core.error import UsageError as Shown

            raise Shown(str(error)) from None

    check.__doc__ = _parser().format_help()
    shell.register_magic_function(check, "cell", "check")


def check_cell(shell: Any, line: str, cell: str) -> Report:
    """The report of a cell's training.

    Raises:
        UsageError: for unknown options, and for a cell with a top-level `await`.
    """
    import trainwright.report  # noqa: F401 - the report shows itself
    from trainwright.api import cell_progress
    from trainwright.options import Options, shows_samples
    from trainwright.rehearsal.request import Work
    from trainwright.runs import run_work
    from trainwright.seams.requirements import versions

    given = _parser().parse_args(shlex.split(line))
    options = Options(budget=given.budget, seed=given.seed, ignore=tuple(given.ignore), repair=given.repair)
    options.check()
    options = replace(options, samples=given.samples and shows_samples(""))
    number = _number(shell)
    code = _compiled(shell, cell, number)
    syntax_tree.cache_clear()

    def start() -> None:
        note_earlier(shell.user_ns, code.co_filename)
        exec(code, shell.user_ns)

    def run(is_over: Callable[[], bool]) -> None:
        with watched_names(shell.user_ns), displaying_nothing(shell):
            start()

    report = Report(script=f"In [{number}]", framework="torch", versions=versions(), date=date_of_now())
    with cell_progress() as say:
        return run_work(report, Work(run=run), options, say, untouched(shell.user_ns))[0]


@contextlib.contextmanager
def untouched(names: dict[str, Any]) -> Iterator[None]:
    """Behind the context, a notebook's variables and the objects in them are what they were before it."""
    from trainwright.adapters.from_objects import kept

    before = dict(names)
    with kept([*before.values()]):
        yield
    names.clear()
    names.update(before)


@contextlib.contextmanager
def displaying_nothing(shell: Any) -> Iterator[None]:
    """What a cell displays meanwhile is no output of the notebook's."""
    shell.display_pub.publish = lambda *args, **kwargs: None
    try:
        yield
    finally:
        del shell.display_pub.publish


def _number(shell: Any) -> int:
    """The execution number of the running cell, whose code is on the stack."""
    numbers = getattr(shell.compile, "_filename_map", {})
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in numbers:
            return int(numbers[frame.f_code.co_filename])
        frame = frame.f_back
    return int(shell.execution_count)


def _compiled(shell: Any, cell: str, number: int) -> CodeType:
    # The magic is on the cell's first line, so the lines after it keep the numbers that the notebook shows.
    source = "\n" + shell.transform_cell(cell)
    name = shell.compile.cache(source, number, raw_code=f"%%check\n{cell}")
    code: CodeType = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        raise UsageError(
            "%%check runs a cell as a script, which cannot have an `await` at the top level: put it in an `async def` "
            "and call that with asyncio.run(…)."
        )
    return code


def note_earlier(namespace: Mapping[str, Any], cell: str) -> None:
    """Record what earlier cells built unobserved: optimizers, schedules, modules and loaders, by their names."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    known = seen()
    owned = {
        (name, id(value)): value
        for name, one in namespace.items()
        if not name.startswith("_")
        for value in (one, *(vars(one).values() if is_users_object(one) else ()))
    }
    for (name, _), value in owned.items():
        if isinstance(value, type):
            continue
        if isinstance(value, torch.optim.Optimizer):
            known.optimizers[value] = _construction(name, value, cell)
        elif isinstance(value, (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)):
            known.schedules[value] = _construction(name, value, cell)
        elif isinstance(value, torch.nn.Module):
            known.modules.setdefault(value, _construction(name, value, cell).place)
        elif isinstance(value, torch.utils.data.DataLoader):
            known.loaders.setdefault(id(value.dataset), _construction(name, value, cell))


def _construction(name: str, value: Any, cell: str) -> Construction:
    """The last assignment to a name in any cell; the checked cell itself if there is none."""
    for file in reversed(list(cell_numbers())):
        place = assignment_place(file, name, sys.maxsize)
        if place is not None:
            return Construction(
                name=type(value).__name__, frame_file=file, line=place.line, place=place, keywords=frozenset()
            )
    return Construction(
        name=type(value).__name__, frame_file=cell, line=1, place=Place(show(cell), 1), keywords=frozenset()
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%check: {message}. {self.format_usage().strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%check",
        add_help=False,
        allow_abbrev=False,
        description="Run the cell's training in a copy of the notebook's process, and say what is wrong with it.",
    )
    parser.add_argument("--budget", type=float, default=60.0, help="time limit for the training, in seconds")
    parser.add_argument("--seed", type=int, default=0, help="moves the random seeds of the run")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="NAME", help="name of a rule to silence; repeatable"
    )
    parser.add_argument("--no-samples", dest="samples", action="store_false", help="show no single rows of the data")
    parser.add_argument(
        "--no-repair", dest="repair", action="store_false", help="run no further copies, in which faults are repaired"
    )
    return parser
