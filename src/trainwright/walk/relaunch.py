"""A script's real training after the walk of its loop: in a separate process that starts from scratch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from trainwright.seams.devices.release import release_memory


@dataclass(frozen=True, kw_only=True)
class Anew:
    """A command, with the folder and environment from before the script ran."""

    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str]

    @classmethod
    def of(cls, script: str | Path, arguments: Sequence[str], *, module: bool) -> Anew:
        """`python script arguments`, as it would run now."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        named = ["-m", str(script)] if module else [str(script)]
        return cls(
            command=(sys.executable, *flags, *named, *arguments), folder=Path.cwd(), environment=dict(os.environ)
        )

    def run(self) -> None:
        """Run it to its end.

        Raises:
            SystemExit: with its status as a shell reports it, if that is not 0.
        """
        release_memory()  # the real training needs what the walked script held
        sys.stdout.flush()
        sys.stderr.flush()
        process = subprocess.Popen(self.command, cwd=self.folder, env=self.environment)
        with process, _passing_on(process):
            status = process.wait()
        if status:
            raise SystemExit(status if status > 0 else 128 - status)


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ignore Ctrl-C, which the terminal also sends to the process, and forward requests to terminate."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    kept = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda number, frame: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
