"""The program to check, as given by a command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# An option of whose value nothing is told: `--api-key VALUE` or `--token=VALUE`.
_SECRET = re.compile(
    r"(-*[\w.-]*(?:(?<![a-z])key|token(?!s|iz)|secret|passw|\bpwd|credential|\bauth(?!or))[\w.-]*)(=.+)?",
    re.IGNORECASE | re.DOTALL,
)
# The forms that services give their tokens, wherever they stand; and the name and password of an address.
TOKEN = re.compile(
    r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|xox[abprs]-|AIza)[\w-]{8,}|\beyJ[\w-]{10,}\.[\w-]+\.[\w-]+|\b[0-9a-f]{40}\b"
)
IN_ADDRESS = re.compile(r"(\w+://)[^/\s:@\"']+:[^/\s@\"']+@")


@dataclass(frozen=True, kw_only=True)
class Program:
    """The program to run: a script, a notebook or a module, with its own arguments."""

    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Environment variables to set before it runs; None removes one."""
    launcher: str = ""
    """The program that would start it, if that is more than Python."""
    processes: str = ""
    """How many processes the launcher would start, if more than one."""
    typed: tuple[str, ...] = ()
    """The script, or the command that starts it, and its arguments as they were typed."""
    said: str = ""
    """Remarks for the user about how it is started here."""

    def set_environment(self) -> None:
        """Set the command's environment variables; folders in PYTHONPATH become importable."""
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for folder in reversed((self.environment.get("PYTHONPATH") or "").split(os.pathsep)):
            if folder and folder not in sys.path:
                sys.path.insert(0, folder)


def without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command line with `…` in the place of what is named like a secret, or looks like one."""
    shown: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        is_value = before.startswith("-") and "=" not in before and not word.startswith("-")
        found = _SECRET.fullmatch(word)
        hidden = "…" if is_value and _SECRET.fullmatch(before) else f"{found[1]}=…" if found and found[2] else word
        shown.append(IN_ADDRESS.sub(r"\1…@", TOKEN.sub("…", hidden)))
    return shown
