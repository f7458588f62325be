"""What a run has imported: a process that has imported the same forks the further runs of its script."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from trainwright.rehearsal.record_parts import Imported
from trainwright.seams.source.places import is_users
from trainwright.seams.state.snapshot import is_accelerated

# Their threads, which an import may start, do not outlive a fork; nor does what torch knows of an accelerator.
_THREADED = ("tensorflow", "jax")


def know_files() -> None:
    """Find out whose file each module is, once for all forks of this process."""
    for module in [*sys.modules.values()]:
        if isinstance(file := getattr(module, "__file__", None), str):
            is_users(file)


def list_imported(environment: Mapping[str, str]) -> Imported | None:
    """What this process has imported; None if one that has imported the same cannot be forked.

    Args:
        environment: as the script found it.
    """
    torch = sys.modules.get("torch")
    is_threaded = any(name in sys.modules for name in _THREADED) or (torch is not None and is_accelerated(torch))
    if is_threaded or not sys.platform.startswith("linux"):
        return None
    files = [(name, getattr(module, "__file__", None)) for name, module in [*sys.modules.items()]]
    found = [(name, file) for name, file in files if isinstance(file, str) and name not in ("__main__", "__mp_main__")]
    return Imported(
        libraries=tuple(name for name, file in found if not is_users(file)),
        own=tuple(name for name, file in found if is_users(file) and "." not in name),
        environment={name: value for name, value in os.environ.items() if environment.get(name) != value},
    )
