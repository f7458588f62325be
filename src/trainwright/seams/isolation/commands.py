"""Commands that the user's code starts: during the check, only read-only queries are run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from types import FrameType
from typing import Any

from trainwright.seams.isolation.tally import Tally

# Commands that change nothing, if their output is read; for git, only subcommands that show something.
_ASKING = frozenset({"nvidia-smi", "rocm-smi", "hostname", "uname", "nproc", "lscpu", "free", "df", "du", "ps", "which",
                     "whoami", "date", "uptime", "ls", "cat", "wc"})  # fmt: skip
_COMPILERS = ("torch._inductor", "torch.utils.cpp_extension", "triton", "numba.")
_SHOWING = frozenset({"rev-parse", "log", "status", "describe", "diff", "show", "symbolic-ref", "rev-list"})


def asks_only(args: Any, given: dict[str, Any]) -> bool:
    """Whether a command only queries the machine and its output is read."""
    words = [os.fsdecode(w) for w in (args.split() if isinstance(args, str) else args)] or [""]
    name = os.path.basename(words[0])  # noqa: PTH119
    shows = name in _ASKING or (name == "git" and bool(_SHOWING & set(words[1:3])))
    return given.get("stdout") == subprocess.PIPE and shows and not {">", "|", ";", "&&", ">>"} & set(words)


def _is_compiling() -> bool:
    """Whether a library is compiling code, which a compiled step requires."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_COMPILERS):
            return True
        frame = frame.f_back
    return False


def not_run(tally: Tally, original: Any) -> type:
    """`subprocess.Popen` for commands that are not run, as if they had succeeded without output."""

    class Done:
        def __new__(cls, args: Any, *rest: Any, **kwargs: Any) -> Any:
            real = asks_only(args, kwargs) or _is_compiling()
            return original(args, *rest, **kwargs) if real else super().__new__(cls)

        def __init__(self, args: Any, *rest: Any, **kwargs: Any) -> None:
            tally.commands += 1
            self.args, self.pid, self.returncode = args, 0, 0
            as_text = (kwargs.get(n) for n in ("text", "universal_newlines", "encoding", "errors"))
            self._silence: Any = "" if any(as_text) else b""
            self.stdin, self.stdout, self.stderr = (
                (io.StringIO() if self._silence == "" else io.BytesIO()) if kwargs.get(n) == subprocess.PIPE else None
                for n in ("stdin", "stdout", "stderr")
            )

        def communicate(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            return (None if self.stdout is None else self._silence, None if self.stderr is None else self._silence)

        def wait(self, timeout: float | None = None) -> int:
            return 0

        def poll(self) -> int:
            return 0

        def kill(self) -> None:
            """Does nothing: it has ended already."""

        def send_signal(self, number: int) -> None:
            """Does nothing: it has ended already."""

        terminate = kill

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *raised: object) -> None:
            """Does nothing: nothing is open."""

    return Done
