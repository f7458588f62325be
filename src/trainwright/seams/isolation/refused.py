"""Refuses what Python is about to write, start or send, where neither the kernel nor a redirected path keeps it away.

Python's audit hook hears of each file, command and connection, whoever asked for it; see sys.addaudithook.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from trainwright.seams.failures.blame import chain_of, of_pipeline
from trainwright.seams.isolation.tally import KeptAway

REFUSED = "refused during a check: the kernel isolates no process here"
# How those who asked past Python say that the kernel refused: Arrow, HDF5 and TensorFlow, SQLite, torch.
_BY_KERNEL = re.compile(
    r"Permission ?denied|unable to open database file|readonly database|cannot be opened", re.IGNORECASE
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events of calls that change files, and which of their arguments are the paths.
_OF_ONE_PATH = ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr",
                "os.removexattr")  # fmt: skip
_CHANGING = {**dict.fromkeys(_OF_ONE_PATH, (0,)), "os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,)}
_COMMANDS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn")
# Commands that change nothing; for git, only subcommands that show something.
_ASKING = frozenset({"nvidia-smi", "rocm-smi", "hostname", "uname", "nproc", "lscpu", "free", "df", "du", "ps", "which", "id",
                     "whoami", "date", "uptime", "ls", "cat", "wc", "ldconfig", "lsb_release", "clear"})  # fmt: skip
_SHOWING = frozenset({"rev-parse", "log", "status", "describe", "diff", "show", "symbolic-ref", "rev-list", "version",
                      "ls-files"})  # fmt: skip
_COMPILERS = ("torch._inductor", "torch.utils.cpp_extension", "triton", "numba.")


class RefusedAct(PermissionError):
    """What a check does not let a script do."""


class Guard:
    """What is refused.

    Args:
        is_ours: whether a path may be written.
        tally: counts what was refused.
    """

    def __init__(self, is_ours: Callable[[Any], bool], tally: KeptAway) -> None:
        self._is_ours, self._tally = is_ours, tally
        self._is_network_cut = False

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Judge an audit event.

        Raises:
            RefusedAct: it is refused.
            OSError: the network is cut.
        """
        if event == "open":
            if (args[2] or 0) & _WRITING:
                self.check_path(args[0])
        elif event in _CHANGING:
            for position in _CHANGING[event]:
                self.check_path(args[position], args[-1] if event in ("os.mkdir", "os.remove", "os.rmdir") else -1)
        elif event == "sqlite3.connect":
            if not re.search(r"^$|:memory:|mode=(ro|memory)|immutable=1", os.fsdecode(args[0])):
                self.check_path(args[0])
        elif event in _COMMANDS:
            if not _only_asks(args[1] if event == "subprocess.Popen" else args[0]) and not _is_compiling():
                self._tally.commands += 1
                raise self.refusal(f"the command {os.fsdecode(args[0])}")
        elif self._is_network_cut and event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
            address = args[0] if event == "socket.getaddrinfo" else args[1][0] if isinstance(args[1], tuple) else ""
            if not _is_this_machine(address):
                self._tally.requests += 1
                raise of_pipeline(OSError(errno.ENETUNREACH, f"another machine: {REFUSED}"))

    def cut_network(self) -> None:
        """From now on, other machines are out of reach."""
        self._is_network_cut = True

    def check_path(self, path: Any, folder: int = -1) -> None:
        """Refuse to change a file of the user's.

        Args:
            folder: the descriptor of the folder that the path begins at; -1: none.
        """
        if isinstance(path, (str, bytes, os.PathLike)):
            at = Path(os.fsdecode(path))
            with contextlib.suppress(OSError):
                at = at if folder < 0 else Path(f"/proc/self/fd/{folder}").readlink() / at
            if not self._is_ours(at):
                raise self.refusal(f"writing {at}")

    def refusal(self, what: str) -> RefusedAct:
        """Note that something is refused; returns the exception that says so."""
        self._tally.refused[what] = None
        return of_pipeline(RefusedAct(errno.EACCES, f"{what} was {REFUSED}"))


_now: Guard | None = None


@contextlib.contextmanager
def refusing(guard: Guard) -> Iterator[None]:
    """Refuse it while the context lasts. Python keeps an audit hook for good: outside it hears without an answer."""
    global _now
    _add_hook()
    _now = guard
    try:
        yield
    finally:
        _now = None


@functools.cache
def _add_hook() -> None:
    sys.addaudithook(lambda event, args: _now.hear(event, args) if _now is not None else None)


def is_refusal(error: BaseException | None, tally: KeptAway) -> bool:
    """Whether an exception, or one that it came from, tells of what was refused or of a file that was redirected."""
    files = {os.path.basename(file) for file in tally.files}  # noqa: PTH119
    for one in chain_of(error):
        text = str(one)
        if REFUSED in text or _BY_KERNEL.search(text):
            return True
        if isinstance(one, OSError) and (tally.refused or any(name in text for name in files)):
            return True
    return False


def _only_asks(command: Any) -> bool:
    """Whether a command changes nothing."""
    is_text = isinstance(command, (str, bytes))
    words = os.fsdecode(command).split() if is_text else [os.fsdecode(word) for word in command]
    if words[:2] == ["/bin/sh", "-c"]:
        words = words[2].split()
    if not words or {">", "|", ";", "&&", ">>", "&"} & set(words):
        return False
    name = os.path.basename(words[0])  # noqa: PTH119
    return name in _ASKING or "--version" in words[1:2] or (name == "git" and bool(_SHOWING & set(words[1:4])))


def _is_compiling() -> bool:
    """Whether a library is compiling code, which a compiled step requires."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_COMPILERS):
            return True
        frame = frame.f_back
    return False


def _is_this_machine(address: Any) -> bool:
    host = str(address or "").strip("[]").partition("%")[0]
    if host in ("", "localhost", "0.0.0.0", "::", "None") or host == socket.gethostname():
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
