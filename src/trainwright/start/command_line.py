"""The words of `trainwright check` and `run`: SCRIPT is found among them, and all behind it are the script's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainwright.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a command, by one of its names."""

    name: str
    takes_value: bool


def arrange_words(words: Sequence[str], options_of: Callable[[str], Sequence[Option]]) -> tuple[list[str], str]:
    """The command line with `--` inserted before SCRIPT, and a message for the user on options of ours behind it.

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
    script, behind = words[at], words[at + 1 :]
    return [*words[:at], "--", script, *behind], _say_whose(script, behind, options)


def _say_whose(script: str, behind: Sequence[str], options: Sequence[Option]) -> str:
    """Which options of ours stand behind a script that does not name them; empty: none.

    Short options are left out: `-m` says what SCRIPT is, and comes before it.
    """
    ours = {option.name for option in options if option.name.startswith("--")}
    given = dict.fromkeys(word.partition("=")[0] for word in behind)
    named = [name for name in given if name in ours and not _names_option(script, name)]
    if not named:
        return ""
    goes, them = ("go", "them") if len(named) > 1 else ("goes", "it")
    return (
        f"{', '.join(named)} after {script} {goes} to the script; "
        f"to use {them} for Trainwright, write {them} before {script}."
    )


def _names_option(script: str, option: str) -> bool:
    """Whether a script's text contains an option itself, as in `add_argument("--seed")`."""
    try:
        text = Path(script).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(rf"[\"']{re.escape(option)}[\"'=]", text) is not None
