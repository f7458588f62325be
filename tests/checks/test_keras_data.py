"""fit's data of every kind, on each of Keras's backends: a process each, as a backend is chosen once."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.keras

SCRIPT = Path(__file__).parents[1] / "helpers" / "keras_data_checks.py"
INSTALLED = all(importlib.util.find_spec(n) for n in ("keras", "tensorflow", "jax"))


@pytest.mark.skipif(not INSTALLED, reason="keras and its backends are not installed")
@pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
def test_what_is_read_is_what_keras_itself_would_read(backend: str) -> None:
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert done.stdout.count("check_") == SCRIPT.read_text("utf-8").count("\ndef check_")
