"""The program to be walked, as given by a command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is run: a script, a notebook or a module, with its own arguments."""

    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """What is to be set in the environment before it runs; None is taken out."""
    launcher: str = ""
    """The program that would start it, where that is more than Python."""
    said: str = ""
    """What to tell the user about how it is started here."""

    def set_environment(self) -> None:
        """Set what the command sets; folders of PYTHONPATH are found from now on."""
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for folder in reversed((self.environment.get("PYTHONPATH") or "").split(os.pathsep)):
            if folder and folder not in sys.path:
                sys.path.insert(0, folder)
