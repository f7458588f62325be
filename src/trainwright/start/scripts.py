"""Finds the script that the user named, or suggests what to write instead."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainwright.errors import UsageError
from trainwright.start.launchers import UNDERSTOOD, is_command, is_launcher_module, is_there, understood
from trainwright.start.program import Program

SUFFIXES = (".py", ".pyw", ".ipynb", ".ipy", "")
_SHELL = (".sh", ".bash", ".zsh", ".slurm", ".sbatch")
# Maximum number of a folder's files to suggest.
MOST_PROPOSED = 5


def program_of(script: str, arguments: Sequence[str], *, module: bool) -> Program:
    """The program that a command's words describe.

    Raises:
        UsageError: if there is no such script, or a launcher's command is not supported.
    """
    typed = (script, *arguments)
    if module:
        if is_launcher_module(script):
            return replace(understood(["python", "-m", *typed]), typed=typed)
        if Path(script).is_file() and Path(script).suffix in (".py", ".ipynb"):
            raise UsageError(f"-m takes the name of a module, but {script} is a file; leave out -m.")
        return Program(script=script, arguments=tuple(arguments), module=True, typed=typed)
    is_file = is_there(script)
    spaced = " " in script and not is_file
    if (is_command(script) and (arguments or not is_file)) or (spaced and is_command(script.split()[0])):
        program = understood([script, *arguments])
    else:
        program = Program(script=script, arguments=tuple(arguments))
    if not program.module:
        check_script_file(program.script)
    return replace(program, typed=typed)


def check_script_file(script: str) -> None:
    """Check that a file can be checked.

    Raises:
        UsageError: if it does not exist, or is neither a Python script nor a notebook.
    """
    path = Path(script)
    if not is_there(script):
        raise UsageError(f"there is no file {script}; name an existing Python script.{_did_you_mean(path)}")
    if path.is_dir():
        raise UsageError(
            f"{script} is a folder; name a Python script.{_inside(path)} For a module, use `trainwright check -m`."
        )
    if path.suffix in _SHELL:
        raise UsageError(f"{script} is a shell script; name a Python script.{_commands_told(path)}")
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"{script} must be a Python script (.py) or a notebook (.ipynb); for a module, use `trainwright check -m`."
        )


def _did_you_mean(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" The folder {folder} does not exist either."
    names = [p.name for p in folder.iterdir() if p.suffix in SUFFIXES and p.suffix and p.is_file()]
    near = difflib.get_close_matches(path.name, names, 1) or [n for n in names if Path(n).stem == path.name]
    if near:
        return f" Did you mean {folder / near[0]}?"
    module = Path(*path.name.split("."))
    if len(module.parts) > 1 and is_there(f"{module}.py"):
        return f" For a module, write -m: trainwright check -m {path.name}."
    if not path.suffix:
        return f" A command that starts the training must begin with one of {UNDERSTOOD}."
    return ""


def _inside(folder: Path) -> str:
    """The scripts in a folder; those that look like a training come first."""
    found = sorted(
        (p for p in folder.iterdir() if p.suffix in (".py", ".ipynb") and p.name != "__init__.py"),
        key=lambda p: ("train" not in p.name and p.name != "__main__.py", p.name),
    )
    if not found:
        return ""
    more = ", …" if len(found) > MOST_PROPOSED else ""
    return f" It contains {', '.join(str(p) for p in found[:MOST_PROPOSED])}{more}."


def _commands_told(path: Path) -> str:
    commands = list(_commands(path.read_text("utf-8", errors="replace")))
    if not commands:
        return " Or write the command that starts the training: trainwright check -- COMMAND."
    lines = "".join(f"\n    trainwright check -- {c}" for c in commands[:MOST_PROPOSED])
    return f" Or check the command in it:{lines}"


def _commands(text: str) -> Iterator[str]:
    """The lines of a shell script that start a Python script."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        try:
            words = shlex.split(line, comments=True)
            understood(words)
        except (ValueError, UsageError):
            continue
        if words:
            yield line.strip()
