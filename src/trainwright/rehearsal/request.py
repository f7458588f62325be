"""What a rehearsal's process is asked to do, and what it tells on the way; files pass between it and the check."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwright.rehearsal.limits import PATIENCE

# A process whose isolation the kernel refused ends with this status, and is started again with another isolation.
REFUSED = 77
KERNEL, PYTHON = "kernel", "python"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is run in a script's place, of the objects that this process holds."""

    run: Callable[[Callable[[], bool]], Any]
    """Given whether the training under way is to end."""
    most_updates: int | None = None
    """Of a training that has no end of its own, and is ended behind so many; None: it has one."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A script to rehearse, with its limits; `folder` holds what passes between the processes."""

    script: str
    arguments: tuple[str, ...]
    module: bool
    device: str
    seconds: float
    folder: str
    isolation: str = KERNEL
    seed: int = 0
    """By how many steps the script's random seeds are moved (`seeds.py`); 0: not at all."""
    watched: bool = True
    """Without watchers only the end and the seconds are recorded: what watching costs is measured so."""

    samples: bool = True
    """Whether single rows may be shown."""

    copies: dict[str, str] = field(default_factory=dict)
    """Texts that are run in the place of files, by their resolved paths."""

    starter: int = 0
    """The process that has started the check and those of the training's other processes, of which this run is one; 0: of
    none."""

    @property
    def record(self) -> Path:
        """Where the record is written."""
        return Path(self.folder, "record")

    @property
    def repairs(self) -> Path:
        """The repairs that are to be in force, if there are any."""
        return Path(self.folder, "repairs")

    @property
    def progress(self) -> Path:
        """Where the run tells how far it is."""
        return Path(self.folder, "progress")

    @property
    def scratch(self) -> Path:
        """Where what the script writes is kept, until it is thrown away."""
        return Path(self.folder, "written")

    def write(self) -> Path:
        """Write it; returns the file."""
        file = Path(self.folder, "request.json")
        file.write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")
        return file

    @classmethod
    def read(cls, file: Path) -> Request:
        """The request in a file."""
        data = json.loads(file.read_text("utf-8"))
        return cls(**{**data, "arguments": tuple(data["arguments"])})


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is."""

    updates: int = 0
    loss: float | None = None
    elapsed: float = 0.0
    """As `Limits` counts."""
    began: float | None = None
    """When its time began, on the machine's clock, which runs on where the script makes no more updates."""

    @property
    def seconds(self) -> float:
        """How much of its time is over."""
        return self.elapsed if self.began is None else max(self.elapsed, (time.monotonic() - self.began) / PATIENCE)

    def write(self, file: int) -> None:
        """Write it over what was there."""
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, json.dumps(dataclasses.asdict(self)).ljust(200).encode())

    @classmethod
    def read(cls, file: Path) -> Progress:
        """What was last written; nothing at the beginning."""
        try:
            return cls(**json.loads(file.read_text("utf-8")))
        except (OSError, ValueError):
            return cls()
