"""Several processes that train together on one machine: which of them this is, and what they leave for one another.

They exchange facts as files in a folder that is named after the process which started them, so that this works where
each believes to be alone too, and nobody waits in a collective call.
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

# Processes of one launch come to their training within seconds of each other; one that is not there by then has ended.
SECONDS_WAITED = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Position:
    """Which process of how many this is."""

    rank: int
    world_size: int
    here: int
    """How many of them are on this machine."""
    believed: int
    """How many the process counts itself: 1 where it set up no process group, or does not know of it."""


def position() -> Position | None:
    """This process's position among those that a launcher or the script started; None where it is alone."""
    environment = os.environ
    world, rank = (_number(environment.get(n)) for n in ("WORLD_SIZE", "RANK"))
    believed = 1
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        believed = world = distributed.get_world_size()
        rank = distributed.get_rank()
    # On a CPU, Accelerator() joins the group and then counts itself alone (accelerate 1.15).
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    if state is not None and "num_processes" in state._shared_state:
        believed = state._shared_state["num_processes"]
    if world is None or world < 2 or rank is None:
        return None
    # Accelerate writes LOCAL_WORLD_SIZE=1 where nobody did; only torchrun's is to be believed, and it tells of machines.
    machines = _number(environment.get("GROUP_WORLD_SIZE")) or 1
    here = (_number(environment.get("LOCAL_WORLD_SIZE")) or world) if machines > 1 else world
    return Position(rank=rank, world_size=world, here=min(here, world), believed=believed)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


class Exchange:
    """Where the processes that one process started leave what they have to say.

    Args:
        starter: its id.
    """

    def __init__(self, starter: int) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"trainwright-{starter}-{_started(starter)}"

    def put(self, name: str, said: Mapping[str, Any]) -> None:
        """Leave something, whole or not at all."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        unfinished = self._folder / f"{name}.{os.getpid()}"
        unfinished.write_text(json.dumps(said), encoding="utf-8")
        unfinished.replace(self._folder / f"{name}.json")

    def get(self, name: str) -> dict[str, Any] | None:
        """What was left under a name."""
        with contextlib.suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return found
        return None

    def gather(self, names: list[str], seconds: float = SECONDS_WAITED) -> dict[str, dict[str, Any]]:
        """What was left under each name, as far as it came in time."""
        ends, found = time.monotonic() + seconds, dict[str, dict[str, Any]]()
        while True:
            found |= {n: said for n in names if n not in found and (said := self.get(n)) is not None}
            if len(found) == len(names) or time.monotonic() > ends:
                return found
            time.sleep(_POLL_SECONDS)

    def clear(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _started(process: int) -> str:
    """When a process began, in the kernel's ticks: ids are used again."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return "0"


@contextlib.contextmanager
def group_kept() -> Iterator[None]:
    """While the context lasts, a process group stays: what a script does after its epochs is run for a look as well."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        yield
        return
    destroy, distributed.destroy_process_group = distributed.destroy_process_group, lambda group=None: None
    try:
        yield
    finally:
        distributed.destroy_process_group = destroy


@contextlib.contextmanager
def unconnected() -> Iterator[None]:
    """While the context lasts, collective calls go nowhere and wait for nobody: as if every rank gave what this one does.

    The process group stays gone afterwards: the other ranks have ended. Modules in DistributedDataParallel are called
    as they are.
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
    # What a script does after its epochs is run for a look as well.
    destroy, distributed.destroy_process_group = distributed.destroy_process_group, lambda group=None: None
    try:
        yield
    finally:
        kind.forward, distributed.destroy_process_group = forward, destroy
