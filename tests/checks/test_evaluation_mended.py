"""What mends the calls of the model and its loss in training mends those of the evaluation, in every framework."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import check_script, loud, said

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "evaluation_mended"
NEEDS = {"accelerate": "accelerate", "keras": "keras", "lightning": "lightning", "torch": "torch",
         "trainer": "transformers"}  # fmt: skip


@pytest.mark.parametrize(
    "framework", [pytest.param(f, marks=[pytest.mark.keras] if f == "keras" else []) for f in NEEDS]
)
def test_labels_that_training_has_renumbered_are_renumbered_in_the_evaluation(framework: str) -> None:
    """A Trainer's evaluation raised "Target 3 is out of bounds." once its training step was mended."""
    if find_spec(NEEDS[framework]) is None:
        pytest.skip(f"{NEEDS[framework]} is not installed")
    report = check_script(FOLDER / f"with_{framework}.py")
    (finding,) = (f for f in report.findings if f.name in loud(report))
    assert finding.name == "misnumbered-labels", said(report)
    assert finding.fix is not None and finding.fix.tried, said(report)
    shown = "not shown" if framework == "trainer" else "learns"
    assert f"judged by itself: {shown}; after 20 updates" in report.message, said(report)
    assert report.failure is None and not report.internal_errors, said(report)


@pytest.mark.keras
def test_a_repair_of_a_loss_is_made_while_jax_traces_it() -> None:
    """It read the labels' values, which are not there yet, and was said to be tried all the same."""
    if find_spec("jax") is None or find_spec("keras") is None:
        pytest.skip("jax is not installed")
    ended = subprocess.run(
        [sys.executable, "-m", "trainwright", "check", str(FOLDER / "with_keras.py")],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "fixed in memory" in ended.stdout
    assert "Trainwright itself" not in ended.stdout
