"""Runs a script, a notebook or a module as Python itself would, a notebook with a stand-in for its shell.

A real shell would keep a history on disk and change the whole process. `Shell` does what later code depends on (folders,
variables, files, commands), ignores what only displays something, and reports what it skips.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainwright.core import cells
from trainwright.errors import UsageError
from trainwright.seams.failures.blame import of_pipeline
from trainwright.seams.scripts.notebook import asks_for_shell, standing_for, text_of
from trainwright.seams.source.places import checking_module, show

_INSTALLING = re.compile(
    r"^\s*(sudo\s+)?(\S*python\S*\s+-m\s+)?(uv\s+)?(pip3?|conda|mamba|apt|apt-get|uv|poetry|npm)\s+(\S+\s+)*?"
    r"(install|add|sync|update|upgrade|uninstall|remove)\b"
)
_TRAINING = re.compile(
    r"\b(torchrun|accelerate\s+launch|deepspeed)\b|\bpython\S*\s+(\S+\s+)*?\S*(train|fit|fine_?tune|run_)\w*\.py\b"
)
_SHOWING = frozenset({
    "matplotlib", "load_ext", "reload_ext", "unload_ext", "autoreload", "config", "tensorboard", "autosave", "precision",
    "xmode", "who", "who_ls", "whos", "ls", "history", "colors", "pdb", "automagic", "aimport", "pinfo", "pinfo2", "psource", "pdoc",
    "lsmagic", "alias", "rehashx", "watermark", "gui", "logstop", "reset_selective", "bookmark", "dirs", "doctest_mode",
})  # fmt: skip
# What this process's notebook asked for and did not get, in a sentence each.
SKIPPED: list[str] = []
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "micromamba", "uv")


@contextlib.contextmanager
def starting(script: str | Path, arguments: Sequence[str], *, module: bool) -> Iterator[Callable[[], Any]]:
    """A function that runs a script as `__main__`, with its own arguments and search path while the context lasts."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_as_program(str(script), arguments, module))
        stack.enter_context(checking_module(str(script) if module else ""))
        if module:
            yield functools.partial(runpy.run_module, str(script), run_name="__main__", alter_sys=True)
            return
        path = Path(script)
        notebook = stack.enter_context(_notebook(path))
        # The full path, as in `python script.py`: `__file__` stays valid after a change of directory.
        yield functools.partial(runpy.run_path, str(path.absolute()), init_globals=notebook, run_name="__main__")


@contextlib.contextmanager
def _notebook(path: Path) -> Iterator[dict[str, Any] | None]:
    """Run a notebook, or a file exported from one, as a script; yields its initial names."""
    text = text_of(path)
    if text is None and not asks_for_shell(path):
        yield None
        return
    os.environ.setdefault("MPLBACKEND", "agg")  # as in a notebook, no figure opens a window
    sys.path.insert(1, "")  # a kernel imports from its working directory, wherever that is
    shell = Shell(show(str(path)))
    with standing_for(path, text) if text is not None else contextlib.nullcontext():
        yield shell.namespace()


@contextlib.contextmanager
def _as_program(script: str, arguments: Sequence[str], module: bool) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` as `python script.py` would."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path.cwd() if module else Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


class Shell:
    """The shell features that a notebook's code may use.

    Args:
        file: the notebook.
    """

    def __init__(self, file: str) -> None:
        self.user_ns: dict[str, Any] = {}
        self.config: dict[str, Any] = {}
        self._file = file
        self._bodies = 0

    def namespace(self) -> dict[str, Any]:
        """The names that a notebook has from the start."""
        return {"get_ipython": self._get, "display": _display}

    def _get(self) -> Shell:
        frame = sys._getframe(1)
        self.user_ns = frame.f_globals
        return self

    # Lines

    def run_line_magic(self, name: str, line: str, _stack_depth: int = 1) -> Any:
        """Do what a `%magic` does, or report that it is skipped."""
        known: dict[str, Callable[[str], Any]] = {
            "cd": self._cd,
            "pwd": lambda line: str(Path.cwd()),
            "env": self._env,
            "set_env": self._env,
            "run": self._run,
            "time": self._statement,
            "timeit": self._statement,
            "prun": self._statement,
            "sx": self.getoutput,
            "system": self.getoutput,
            "mkdir": lambda line: self.system(f"mkdir {line}"),
        }
        if name in known:
            return known[name](self._expanded(line.strip()))
        if name in _INSTALLERS or name not in _SHOWING:
            SKIPPED.append(f"%{name} {line}".rstrip() + " was skipped.")
        return None

    def magic(self, line: str) -> Any:
        """The same, with name and arguments in one string."""
        name, _, rest = line.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest)

    def _cd(self, line: str) -> None:
        words = [w for w in shlex.split(line) if w != "-q"]
        os.chdir(Path(words[0] if words else "~").expanduser())

    def _env(self, line: str) -> Any:
        if not line:
            return dict(os.environ)
        name, sign, value = line.partition("=") if "=" in line else line.partition(" ")
        if not sign:
            return os.environ.get(name)
        os.environ[name.strip()] = value.strip()
        return None

    def _run(self, line: str) -> None:
        words = [w for w in shlex.split(line) if w not in ("-i", "-n", "-t", "-p")]
        file = Path(words[0])
        if file.suffix != ".py":
            SKIPPED.append(f"%run {line} was skipped: of files, only Python scripts are run.")
            return
        scope = {"__name__": "__main__", "__file__": str(file.absolute())}
        arguments, sys.argv = sys.argv, words
        try:
            exec(compile(file.read_text("utf-8"), str(file.absolute()), "exec", dont_inherit=True), scope)
        finally:
            sys.argv = arguments
        self.user_ns.update({n: v for n, v in scope.items() if not n.startswith("__")})

    def _statement(self, line: str) -> None:
        self._execute(line)

    # Cells

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        """Write the file of `%%writefile`, run the cell of a magic that would run it, skip the others."""
        from trainwright.seams.scripts.notebook import RUNNING

        if name in ("writefile", "file"):
            words = self._expanded(line).split()
            with Path(words[-1]).expanduser().open("a" if "-a" in words[:-1] else "w", encoding="utf-8") as file:
                file.write(cell if cell.endswith("\n") else f"{cell}\n")
        elif name in RUNNING:  # in an export: a string among other code
            self._execute(cell)
        else:
            SKIPPED.append(f"a cell of %%{name} was skipped.")
        return None

    def run_cell(self, cell: str, *given: Any, **named: Any) -> None:
        """Run a string as a cell."""
        self._execute(cell)

    def _execute(self, text: str) -> None:
        """Run a string under a file name by which its lines are found."""
        self._bodies += 1
        name = f"<ipython cell {self._bodies} of {Path(self._file).name}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec", dont_inherit=True), self.user_ns)

    def captured(self) -> Any:
        """The result of `%%capture name`; here the output is not captured."""

        class Captured:
            stdout = stderr = ""
            outputs: tuple[Any, ...] = ()

            def show(self) -> None:
                """Does nothing: no output was captured."""

            __call__ = show

        return Captured()

    # Cells that cannot run

    def refuse(self, cell: int, given: tuple[Any, ...]) -> None:
        """Raise Python's error for a cell that is not valid Python."""
        message, line, offset, text, end_line, end_offset = given
        first = cells.line_of(self._file, cell, 1)
        where = (self._file, first + (line or 1) - 1, offset, text, first + (end_line or line or 1) - 1, end_offset)
        raise of_pipeline(SyntaxError(message, where))

    def refuse_await(self, cell: int, line: int) -> None:
        """Report that a cell's `await` has no event loop."""
        raise of_pipeline(
            UsageError(
                f"{self._file}, cell {cell}, line {line}: `await` outside of a function needs the event loop of a notebook, "
                "and a check runs the notebook as a script. Put it into an `async def` and call asyncio.run(…)."
            )
        )

    # Commands

    def system(self, command: str) -> None:
        """Run a `!command`, unless it installs something or trains."""
        command = self._expanded(command)
        if why := _skipped(command):
            SKIPPED.append(f"!{command.strip()} was skipped{why}.")
            return
        sys.stdout.flush()
        self.user_ns["_exit_code"] = subprocess.run(command, shell=True, check=False).returncode

    system_piped = system_raw = system

    def getoutput(self, command: str, *given: Any, **named: Any) -> list[str]:
        """The lines that a `!command` prints."""
        from IPython.utils.text import SList

        command = self._expanded(command)
        if why := _skipped(command):
            SKIPPED.append(f"!{command.strip()} was skipped{why}.")
            return SList([])
        done = subprocess.run(command, shell=True, check=False, stdout=subprocess.PIPE, text=True)
        return SList(done.stdout.splitlines())

    def _expanded(self, text: str) -> str:
        """A command with the notebook's `{expression}` and `$name` filled in."""

        def value(found: re.Match[str]) -> str:
            try:
                return str(eval(found[1] or found[2], self.user_ns))
            except Exception:  # not an expression of the notebook: left to the shell
                return found[0]

        return re.sub(r"(?<![{$])\{([^{}\s][^{}]*)\}|\$([A-Za-z_]\w*)", value, text)


def _skipped(command: str) -> str | None:
    """Why a command is skipped, to follow "was skipped"; None if it is not."""
    if _INSTALLING.search(command):
        return ": a check installs nothing"
    if _TRAINING.search(command):
        return f"; check it separately: trainwright check -- {command.strip()}"
    return None


def _display(*objects: Any, **named: Any) -> None:
    """Show objects as a script would."""
    for one in objects:
        print(one)
