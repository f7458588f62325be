"""The program to check, as given by a command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


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
