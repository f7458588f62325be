"""Several processes that train together on one machine: this process's position, and how they exchange facts.

They exchange files in a folder named after their parent process. This also works if each process believes it is alone,
and nobody waits in a collective call.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Processes of one launch reach their training within seconds of each other; one that is later than this has ended.
SECONDS_WAITED = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Position:
    """A process's rank and the number of processes."""

    rank: int
    world_size: int
    here: int
    """How many of them are on this machine."""
    believed: int
    """The process's own count: 1 if it set up no process group, or does not know of one."""


def position() -> Position | None:
    """This process's position among those that a launcher or the script started; None if it is alone."""
    environment = os.environ
    world, rank = (_number(environment.get(n)) for n in ("WORLD_SIZE", "RANK"))
    believed = 1
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        believed = world = distributed.get_world_size()
        rank = distributed.get_rank()
    # On a CPU, Accelerator() joins the group but then counts only itself (accelerate 1.15).
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    if state is not None and "num_processes" in state._shared_state:
        believed = state._shared_state["num_processes"]
    if world is None or world < 2 or rank is None:
        return None
    # LOCAL_WORLD_SIZE is reliable only with torchrun, which also sets GROUP_WORLD_SIZE; Accelerate defaults it to 1.
    machines = _number(environment.get("GROUP_WORLD_SIZE")) or 1
    here = (_number(environment.get("LOCAL_WORLD_SIZE")) or world) if machines > 1 else world
    return Position(rank=rank, world_size=world, here=min(here, world), believed=believed)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


_started_by: dict[int, int] = {}


def starter() -> int:
    """The process that started this one, and the other processes of its training."""
    return _started_by.get(os.getpid(), os.getppid())


class Exchange:
    """Exchanges messages between the processes that one process started.

    Args:
        starter: the parent process's id.
    """

    def __init__(self, starter: int) -> None:
        self.folder = Path(tempfile.gettempdir()) / f"trainwright-{starter}-{_started(starter)}"

    def put(self, name: str, said: Mapping[str, Any]) -> None:
        """Store a message atomically."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        unfinished = self.folder / f"{name}.{os.getpid()}"
        unfinished.write_text(json.dumps(said), encoding="utf-8")
        unfinished.replace(self.folder / f"{name}.json")

    def get(self, name: str) -> dict[str, Any] | None:
        """The message stored under a name."""
        with contextlib.suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            return found
        return None

    def gather(self, names: list[str], seconds: float = SECONDS_WAITED) -> dict[str, dict[str, Any]]:
        """The messages stored under these names, as far as they arrived in time."""
        ends, found = time.monotonic() + seconds, dict[str, dict[str, Any]]()
        while True:
            found |= {n: said for n in names if n not in found and (said := self.get(n)) is not None}
            if len(found) == len(names) or time.monotonic() > ends:
                return found
            time.sleep(_POLL_SECONDS)

    def clear(self) -> None:
        """Delete all messages."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _started(process: int) -> str:
    """A process's start time in kernel ticks, because ids are reused."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return "0"


@contextlib.contextmanager
def unconnected() -> Iterator[None]:
    """While the context lasts, collective calls return at once, as if every rank contributed what this one does.

    The process group stays destroyed afterwards: the other ranks have ended. DistributedDataParallel modules call the
    wrapped module directly.
    """
    torch = sys.modules.get("torch")
    distributed: Any = sys.modules.get("torch.distributed")
    if torch is None or distributed is None or not distributed.is_available():
        yield
        return
    if distributed.is_initialized() and distributed.get_backend() != "fake":
        from torch.testing._internal.distributed.fake_pg import FakeStore

        rank, size = distributed.get_rank(), distributed.get_world_size()
        distributed.destroy_process_group()
        distributed.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
    kind: Any = torch.nn.parallel.DistributedDataParallel
    forward = kind.forward
    kind.forward = lambda self, *args, **kwargs: self.module(*args, **kwargs)
    # Code after the epochs is also run by the check.
    destroy, distributed.destroy_process_group = distributed.destroy_process_group, lambda group=None: None
    try:
        yield
    finally:
        kind.forward, distributed.destroy_process_group = forward, destroy
