"""Faults in scripts that call Keras's fit are named first and on their line; mended and healthy ones are silent.

Keras takes its backend once a process, from KERAS_BACKEND; `make test-all` goes through the three.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import check_script, expected, loud, said
from trainwright.core import Report, Status
from twins import find_scripts, write_script

if find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

pytestmark = pytest.mark.keras

FOLDER = Path(__file__).parents[1] / "fit"
EXAMPLES = FOLDER.parents[1] / "examples"
BAD = sorted(FOLDER.glob("*/bad.py"))
GOOD = find_scripts(FOLDER, "*/good.py")
HEALTHY = sorted((Path(__file__).parents[1] / "healthy" / "keras").glob("*.py"))
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
# A script's comment that names the backends it is written for, or on which its fault does harm in silence.
_BACKENDS = re.compile(r"^# backends: (.+)$", re.MULTILINE)


def _name(script: Path) -> str:
    return script.parent.name


def _needs(script: Path) -> None:
    """Skip a script that is written for other backends than the one in force."""
    named = _BACKENDS.search(write_script(script).read_text(encoding="utf-8"))
    if named and BACKEND not in named.group(1).split():
        pytest.skip(f"for {named.group(1)}")


def _silent(reports: list[Report]) -> None:
    assert reports
    for report in reports:
        assert report.framework == "keras", said(report)
        assert not loud(report) and not report.faulty, said(report)
        assert not [s for s in report.stages if s.status == Status.FAILED], said(report)
        assert report.failure is None, said(report)


@pytest.mark.parametrize("script", BAD, ids=_name)
def test_the_fault_is_its_first_cause(script: Path) -> None:
    _needs(script)
    name, line = expected(script)
    reports = [check_script(script)]
    shown = "\n\n".join(said(report) for report in reports)
    first = next((r.first_cause for r in reports if r.first_cause), None)
    assert first is not None, shown
    assert first.name == name, shown
    assert first.where is not None and first.where.line == line, shown
    assert "compute_metrics" not in shown, "this is what a Trainer calls it"


@pytest.mark.parametrize("script", GOOD, ids=_name)
def test_the_mended_script_is_checked_in_silence(script: Path) -> None:
    _needs(script)
    _silent([check_script(script)])


@pytest.mark.parametrize("script", HEALTHY, ids=lambda script: script.stem)
def test_a_healthy_script_is_checked_in_silence(script: Path) -> None:
    _needs(script)
    _silent([check_script(script)])


def test_a_step_that_this_backend_cannot_call_is_an_error_of_the_script() -> None:
    if BACKEND == "jax":
        pytest.skip("it is written for JAX")
    report = check_script(next(s for s in HEALTHY if s.stem == "custom_train_step_jax"))
    assert not report.internal_errors, said(report)
    assert report.verdict is not None and report.verdict.why == "it stops with TypeError", said(report)


def test_every_bad_script_has_a_mended_one_and_says_what_happens() -> None:
    assert [s.parent for s in BAD] == [s.parent for s in GOOD] and len(BAD) >= 25
    for script in BAD:
        assert "\n\n" in script.read_text(encoding="utf-8").split('"""')[1], script


def test_one_check_finds_all_faults_of_the_lesson_in_order_with_lines_and_tried_fixes() -> None:
    script = EXAMPLES / "keras_text.py"
    report = check_script(script, budget=300)
    lines = script.read_text(encoding="utf-8").split("\n")
    found = [(f.name, lines[f.where.line - 1].partition("(")[0]) for f in report.findings if f.where]
    assert found == [
        ("labels-inside-inputs", "train_dataset = tf.data.Dataset.from_tensor_slices"),
        ("label-out-of-range", "model = TextClassifier"),
        ("wrong-logits-flag", "model.compile"),
        ("hidden-default-rate", "model.compile"),
    ], said(report)
    assert all(f.fix is not None and f.fix.tried for f in report.findings), said(report)


def test_the_healthy_scripts_are_short_and_many() -> None:
    assert len(HEALTHY) >= 25
    assert not [s.name for s in HEALTHY if len(s.read_text(encoding="utf-8").splitlines()) > 60]
