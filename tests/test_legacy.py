"""The TensorFlow models of transformers 4 and tf-keras, in an environment of their own: `make test-legacy`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from walking import all_expected, expected, loud, said, walk_all

if find_spec("tf_keras") is None or find_spec("trainwright.adapters.keras") is None:
    pytest.skip("tf-keras is not installed", allow_module_level=True)

FOLDER = Path(__file__).parent / "legacy"
BAD = sorted(FOLDER.glob("*/bad*.py"))
GOOD = sorted(FOLDER.glob("*/good.py"))


@pytest.mark.parametrize("script", BAD, ids=lambda s: f"{s.parent.name}-{s.stem}")
def test_the_faults_of_a_legacy_script_are_named_in_order(script: Path) -> None:
    report = walk_all(script)[0]
    found = [(f.name, f.where.line if f.where else 0) for f in report.findings if f.name in loud(report)]
    assert report.first_cause is not None, said(report)
    assert report.first_cause.name == expected(script)[0], said(report)
    assert found == all_expected(script), said(report)


@pytest.mark.parametrize("script", GOOD, ids=lambda s: s.parent.name)
def test_the_mended_legacy_script_is_walked_in_silence(script: Path) -> None:
    report = walk_all(script)[0]
    assert not loud(report) and not report.faulty and report.failure is None, said(report)
