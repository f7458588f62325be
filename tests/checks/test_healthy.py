"""Healthy training of every kind is checked to the end, and nothing above a note is said of it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import check_script, loud, said
from trainwright.core import Stage, Status

pytestmark = pytest.mark.slow

# No close look is taken at weights that are changed by hand, and at compiled models.
NOT_LOOKED_AT = ("compiled_model", "handwritten_sgd", "per_sample_gradients")
HEALTHY = sorted((Path(__file__).parents[1] / "healthy").glob("*.py"))
LOOPS = sorted((Path(__file__).parents[1] / "healthy" / "loops").glob("*.py"))


@pytest.mark.parametrize("script", [*HEALTHY, *LOOPS], ids=lambda s: "/".join(s.with_suffix("").parts[-2:]))
def test_a_healthy_script_is_checked_in_silence(script: Path) -> None:
    if "import lightning" in script.read_text(encoding="utf-8") and find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    report = check_script(script, budget=90)
    assert not loud(report) and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status == Status.FAILED], said(report)
    if script.stem not in NOT_LOOKED_AT:
        assert not [s for s in report.stages if s.stage <= Stage.OPTIMIZER and not s.status.through], said(report)
    assert report.failure is None and not report.internal_errors, said(report)


def test_the_healthy_scripts_are_short_and_many() -> None:
    assert len(HEALTHY) >= 16 and len(LOOPS) >= 34
    assert not [s.name for s in [*HEALTHY, *LOOPS] if len(s.read_text(encoding="utf-8").splitlines()) > 60]
