"""Running test scripts as a check does that has no walk: watched to their end, with further runs for repairs."""

import atexit
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainwright.core.report import Report
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_rows import Wanted
from trainwright.rehearsing import add_review

MODULES = ("torch", "sklearn.datasets", "datasets", "transformers.trainer", "accelerate")
_HELPERS = str(Path(__file__).parent)
# What pytest and frameworks set for this process.
_CHANGING = (
    "PYTEST_CURRENT_TEST",
    "PL_SEED_WORKERS",
    "PL_GLOBAL_SEED",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCHINDUCTOR_CACHE_DIR",
)
# Of a run from its first update on; where no rule needs to see how the training ends.
_SECONDS, _FEW_SECONDS = 15.0, 4.0
_servers: list[Server] = []


def run(script: Path, *arguments: str, walked: Report | None = None, **options: Any) -> Report:
    """The report of a script whose training is looked at as it runs.

    Args:
        walked: what the walk said until it left the script.
        options: those of Options.
    """
    asked, server = Options(**options), serve()
    environment = {} if server is not None else {"PYTHONPATH": _paths()}
    seconds = _SECONDS if asked.updates is None else _FEW_SECONDS
    with Rehearsal(
        str(script), arguments, seconds=seconds, folder=Path.cwd(), server=server, environment=environment
    ) as rehearsal:

        def run_again(wanted: Sequence[Wanted]) -> Record:
            rehearsal.start_again(repairs=wanted)
            return rehearsal.wait()

        report = walked or Report(script=str(script))
        return add_review([report], rehearsal.wait(), asked, run_again if asked.repair else None)[0]


def serve() -> Server | None:
    """The process that has imported the frameworks; None where a test has changed the environment since it was started."""
    environment = {name: value for name, value in os.environ.items() if name not in _CHANGING}
    if not _servers:
        server = Server(MODULES, {**environment, "PYTHONPATH": _paths()}).__enter__()
        server.asked = environment
        _servers.append(server)
        atexit.register(server.__exit__)
    return _servers[0] if _servers[0].asked == environment else None


def _paths() -> str:
    return os.pathsep.join(filter(None, (_HELPERS, os.environ.get("PYTHONPATH"))))
