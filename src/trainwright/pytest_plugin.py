"""The pytest plugin: `pytest --trainwright` checks training scripts, and the fixtures assert_learns and assert_same_rows."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any

import pytest

SCRIPTS = pytest.StashKey[dict[Path, list[list[str]]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("trainwright", "training scripts as tests").addoption
    add("--trainwright", action="store_true", help="check the scripts of trainwright_scripts")
    add("--trainwright-require-learning", action="store_true", help="it must be shown that a script's training learns")
    add("--trainwright-budget", metavar="SECONDS", help="limit of a script's run, from its training's first step on")
    parser.addini("trainwright_scripts", "training scripts with their arguments, as on a command line", "linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "trainwright: the check of a training script")
    scripts = config.stash[SCRIPTS] = {}
    for line in config.getini("trainwright_scripts") if config.getoption("--trainwright") else ():
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise pytest.UsageError(f"trainwright_scripts must be command lines: {error}; got {line}") from None
        script = next((word for word in words if word.endswith((".py", ".ipynb"))), line)
        scripts.setdefault(Path(os.path.normpath(config.rootpath / script)), []).append(words)
    if config.getoption("--trainwright") and not scripts:
        raise pytest.UsageError("--trainwright needs trainwright_scripts in pytest's settings: train.py --epochs 3.")
    config.args += map(str, scripts) if config.args_source != config.ArgsSource.ARGS else ()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, Any, Any]:
    found = yield  # a module of tests, too, which would be imported
    return [_ScriptFile.from_parent(parent, path=file_path)] if file_path in parent.config.stash[SCRIPTS] else found


class _ScriptFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for words in self.config.stash[SCRIPTS][self.path]:
            name = f"trainwright[{shlex.join(words[1:])}]" if words[1:] else "trainwright"
            item: _ScriptItem = _ScriptItem.from_parent(self, name=name)
            item.words = words
            item.add_marker("trainwright")
            yield item


class _ScriptItem(pytest.Item):
    words, told = [""], ""

    def setup(self) -> None:
        option, root = self.config.getoption, self.config.rootpath
        words = ["--require-learning"] if option("--trainwright-require-learning") else []
        words += ["--budget", option("--trainwright-budget")] if option("--trainwright-budget") else []
        command = [sys.executable, "-P", "-m", "trainwright", "check", "--json", "-", *words, *self.words]
        env = {**os.environ, "FORCE_COLOR": ""}
        with Popen(command, cwd=root, env=env, stdout=PIPE, stderr=PIPE, encoding="utf-8", errors="replace") as process:
            try:
                shown, said = process.communicate()
            except BaseException:  # Ctrl-C, of which a second one ends it without a report
                for _ in range(2):
                    with contextlib.suppress(ValueError, TimeoutExpired):  # Windows knows no such signal
                        process.send_signal(signal.SIGINT)
                        process.wait(1)
                raise
        if shown:
            from trainwright.core.report import from_dict

            report = from_dict(json.loads(shown))
            self.add_report_section("setup", "script", said.partition(f"trainwright {report.script}: ")[0])
            with contextlib.chdir(root):  # where its lines are read
                said = tell_report(report)
        self.told = said if process.returncode else ""
        if process.returncode not in (0, 1):  # nothing could be checked: an error, and no failure
            pytest.fail(said, pytrace=False)

    def runtest(self) -> None:
        if self.told:
            pytest.fail(self.told, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.nodeid


def tell_report(report: Any) -> str:
    """A report in the terminal's words, below a line in short; of a fault, without all that was seen."""
    from rich.console import Console

    from trainwright.report import terminal, words

    first, verdict, text = report.first_cause, report.verdict, io.StringIO()
    told = f"{words.verdict(verdict)}: {verdict.why}" if verdict else report.message or words.headline(report)
    less: dict[str, Any] = {"stages": (), "sheet": None, "profile": (), "warnings": (), "kept_away": ()}
    console = Console(file=text, force_terminal=False, color_system=None)
    terminal.show(replace(report, **less) if first else report, console, verbose=False)
    return f"{(first.where if first else report.begins) or report.script}: {told}\n\n{text.getvalue()}"


@pytest.fixture(scope="session")
def assert_learns() -> Callable[..., Any]:
    """Require that a training learns, of model, loader, loss, optimizer or what `trainwright.check` takes; gives the report."""
    from trainwright import check
    from trainwright.core import Shown, exit_status
    from trainwright.errors import UsageError

    def assert_learns(*given: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        names = "model loader loss optimizer" if len(given) > 3 else "training loader evaluation_loader"
        if len(given) > 4:
            raise UsageError(f"assert_learns takes model, loader, loss, optimizer, then names; got {len(given)}.")
        report = check(**dict(zip(names.split(), given, strict=False)), **named)
        if report.is_interrupted:
            raise KeyboardInterrupt
        if exit_status(report) or report.verdict is None or report.verdict.shown != Shown.LEARNS:
            pytest.fail(tell_report(report))
        return report

    return assert_learns


@pytest.fixture(scope="session")
def assert_same_rows() -> Callable[..., None]:
    """Require of two data sets or loaders the same rows, as often and with the same labels; ordered=True: in the same order."""
    from trainwright.same_rows import assert_same_rows

    return assert_same_rows
