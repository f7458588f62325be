"""`run` leaves no trace: the training behind its check is bit for bit the training without it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from forked_runs import Runs

TESTS = Path(__file__).parents[1]
STEPS = 12


# One script as any, and one that keeps state everywhere: the process is the script's own.
TRAINED = ["healthy/convolutional_digits.py", "helpers/hoarder.py"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """What writes each step's losses and weights to the file that TRACE names (tests/tracing) is in each child."""
    path = [str(TESTS / "tracing"), str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "TRACE": "set for each", "TRACE_STEPS": str(STEPS), "PYTHONPATH": os.pathsep.join(path),
        "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    with Runs(environment) as started:
        yield started


def traced(runs: Runs, folder: Path, *command: str) -> list[list]:
    """Losses, weights' digest and rates at every step of a script's training."""
    trace = folder / "trace.jsonl"
    trace.unlink(missing_ok=True)
    status, printed = runs.run(*command, folder=folder, variables={"TRACE": str(trace)})
    assert status == 0, printed[-3000:]
    return [json.loads(line) for line in trace.read_text().splitlines()]


# Whatever a check had time for, the training behind it is the same.
@pytest.mark.parametrize("script", TRAINED, ids=lambda s: Path(s).stem)
def test_run_trains_bit_for_bit_as_python_does(script: str, tmp_path: Path, runs: Runs) -> None:
    plain = traced(runs, tmp_path, str(TESTS / script))
    checked = traced(runs, tmp_path, "-m", "trainwright", "run", "--budget", "4", str(TESTS / script))
    assert len(plain[0]) == STEPS
    assert checked == plain
