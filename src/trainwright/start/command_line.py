"""The words of `trainwright check` and `run`: separates our options from the script's own arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainwright.errors import UsageError
from trainwright.start.launchers import is_command
from trainwright.start.reading import names_option, takes_no_arguments


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a command, by one of its names."""

    name: str
    takes_value: bool
    is_shown: bool
    """Whether the command's help shows it; hidden ones are for Trainwright itself."""


def arranged(words: Sequence[str], options_of: Callable[[str], Sequence[Option]]) -> tuple[list[str], str]:
    """The command line with `--` inserted before SCRIPT, and a message for the user.

    Words after SCRIPT belong to the script. Our options after it are accepted only if the script certainly reads no
    command line.

    Args:
        options_of: returns the options of a command, by the command's name.

    Raises:
        UsageError: if there is no SCRIPT.
    """
    if words and words[0].endswith((".py", ".ipynb")):
        raise UsageError(f"A command must come first: trainwright check {' '.join(words)}")
    if not words or words[0] not in ("check", "run"):
        return list(words), ""
    options = options_of(words[0])
    valued = {o.name for o in options if o.takes_value}
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        at += 2 if words[at] in valued else 1
    if at >= len(words) and not {"--help", "-h", "--version"} & set(words):
        raise UsageError(
            f"{words[0]} needs a SCRIPT: trainwright {words[0]} [OPTIONS] train.py [ARGS…]. "
            f"`trainwright {words[0]} --help` lists the options."
        )
    if at >= len(words) or words[at] == "--":
        return list(words), ""
    before, script, behind = list(words[:at]), words[at], list(words[at + 1 :])
    ours, theirs = _parted(behind, options)
    said = ""
    if ours:
        names = ", ".join(dict.fromkeys(word.partition("=")[0] for word in ours if word.startswith("--")))
        if _sees_no_arguments(script, module="-m" in before):
            said = f"{script} reads no command line, so {names} after it is read by Trainwright."
            before, behind = before + ours, theirs
        elif unnamed := [n for n in names.split(", ") if not _names(script, n)]:
            goes = "go" if len(unnamed) > 1 else "goes"
            them = "them" if len(unnamed) > 1 else "it"
            said = (
                f"{', '.join(unnamed)} after {script} {goes} to the script; "
                f"to use {them} for Trainwright, write {them} before {script}."
            )
    return [*before, "--", script, *behind], said


def _parted(words: Sequence[str], options: Sequence[Option]) -> tuple[list[str], list[str]]:
    """Our options among words, with their values, and the other words.

    Short options are left to the script: `-m` says what SCRIPT is, and comes before it.
    """
    named = [o for o in options if o.is_shown and o.name.startswith("--")]
    valued = {o.name for o in named if o.takes_value}
    plain = {o.name for o in named} - valued
    ours: list[str] = []
    theirs: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equal, _ = word.partition("=")
        if word in plain or (name in valued and equal):
            ours.append(word)
        elif name in valued and rest:
            ours += [word, rest.pop(0)]
        else:
            theirs.append(word)
    return ours, theirs


def _sees_no_arguments(script: str, *, module: bool) -> bool:
    if script.endswith(".ipynb"):
        return True
    file = _module_file(script) if module else Path(script)
    if file is None or not file.is_file() or (not module and is_command(script)):
        return False
    return takes_no_arguments(file, Path.cwd() if module else file.resolve().parent)


def _names(script: str, option: str) -> bool:
    return Path(script).is_file() and names_option(Path(script), option)


def _module_file(module: str) -> Path | None:
    """The source of a module in the working directory, found without importing anything."""
    at = Path.cwd().joinpath(*module.split("."))
    files = (at.with_suffix(".py"), at / "__main__.py")
    return next((file for file in files if file.is_file()), None)
