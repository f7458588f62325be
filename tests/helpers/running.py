"""Running test scripts as a check does, in forks of a process that has imported their frameworks."""

import atexit
import os
import re
from pathlib import Path
from typing import Any

import trainwright
from report_schema import check_data
from trainwright.core import Report
from trainwright.core.report import to_dict
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.runs import Runs
from trainwright.seams.scripts.notebook import standing_for, text_of
from twins import write_script

_SOURCE = Path(trainwright.__file__).parent


def _own(folders: str, left_out: str = "^$") -> tuple[str, ...]:
    """Our own modules in folders of the source, but for those with such a word in their names."""
    files = sorted(file for folder in folders.split() for file in (_SOURCE / folder).rglob("*.py"))
    names = (".".join((_SOURCE.name, *file.relative_to(_SOURCE).with_suffix("").parts)) for file in files)
    return tuple(name.removesuffix(".__init__") for name in names if not re.search(left_out, name))


# What a process has imported that forks runs, each of which would compile our modules anew: what it writes does not last.
# TensorFlow survives a fork as long as it has computed nothing.
TORCH = (
    *("torch", "sklearn.datasets", "datasets", "transformers.trainer", "accelerate"),
    *_own("adapters frameworks look probes rehearsal review rules seams stages tensors", "keras|jax"),
)
LIGHTNING = (*TORCH, "lightning.pytorch")
KERAS = ("keras", "sklearn.datasets", *_own("adapters/data adapters/keras probes review rules"))
_OF_LIGHTNING = re.compile(r"^\s*(import|from) (lightning|pytorch_lightning)\b", re.MULTILINE)
_OF_KERAS = re.compile(r"^\s*(import|from) (keras|tf_keras|tensorflow)\b", re.MULTILINE)
_HELPERS = str(Path(__file__).parent)
# What pytest and frameworks set for this process.
_CHANGING = (
    "PYTEST_CURRENT_TEST",
    "PL_SEED_WORKERS",
    "PL_GLOBAL_SEED",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCHINDUCTOR_CACHE_DIR",
)
# Of a run from its first update on; where no rule needs to see how the training ends; and on the wall, of each run.
_SECONDS, _FEW_SECONDS, _PATIENCE = 15.0, 4.0, 90.0
_servers: dict[tuple[str, ...], Server] = {}


def run(script: Path, *arguments: str, few: bool = False, **options: Any) -> Report:
    """The report of a script.

    Args:
        few: a few updates are enough.
        options: those of Options.
    """
    script = write_script(script)
    if script.suffix == ".ipynb" and (cells := text_of(script)) is not None:
        with standing_for(script, cells):  # its lines are counted within its cells from now on
            pass
    asked, text = Options(**options), script.read_text(encoding="utf-8", errors="replace")
    is_of_keras = bool(_OF_KERAS.search(text))  # whose further runs import and compile anew
    server = serve(KERAS if is_of_keras else LIGHTNING if _OF_LIGHTNING.search(text) else TORCH)
    environment = {} if server is not None else {"PYTHONPATH": _paths()}
    rehearsal = Rehearsal(
        str(script),
        arguments,
        seconds=_FEW_SECONDS if few else max(_SECONDS, options.get("budget", 0) / 5),
        seed=asked.seed,
        folder=Path.cwd(),
        server=server,
        environment=environment,
        samples=asked.samples,
    )
    try:
        running = Runs(rehearsal, options.get("budget", _PATIENCE if is_of_keras else _PATIENCE / 3), lambda text: None)
        record = running.run(repairs=asked.repair)
        assert not record.ended.misuse, record.ended.misuse
        report = judge_run(Report(script=str(script)), record, asked, running.run_repaired)
        check_data(to_dict(report))
        return report
    finally:
        rehearsal.__exit__()


def serve(modules: tuple[str, ...] = TORCH) -> Server | None:
    """The process that has imported the frameworks; None where a test has changed the environment since it was started."""
    environment = {name: value for name, value in os.environ.items() if name not in _CHANGING}
    if modules not in _servers:
        server = Server(modules, {**environment, "PYTHONPATH": _paths()}).__enter__()
        server.asked = environment
        _servers[modules] = server
        atexit.register(server.__exit__)
    return _servers[modules] if _servers[modules].asked == environment else None


def _paths() -> str:
    return os.pathsep.join(filter(None, (_HELPERS, os.environ.get("PYTHONPATH"))))
