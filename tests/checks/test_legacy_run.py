"""After a check, models of tf-keras train as if there had been none: `scripts/test --only legacy`."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from twins import write_script

if find_spec("tf_keras") is None:
    pytest.skip("tf-keras is not installed", allow_module_level=True)

FOLDER = Path(__file__).parents[1] / "legacy"


@pytest.mark.parametrize("name", ["sequential", "own_loss"])
def test_run_trains_bit_for_bit_as_the_script_alone(name: str) -> None:
    script = str(write_script(FOLDER / name / "good.py"))
    alone, checked = _weights(script), _weights("-m", "trainwright", "run", script)
    assert alone.startswith("weights [") and checked == alone


def _weights(*arguments: str) -> str:
    """The script's last line."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    ended = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip().splitlines()[-1]
