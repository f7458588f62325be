"""The TensorFlow models of transformers 4 and tf-keras, in an environment of their own: `make test-legacy`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from walking import all_expected, loud, said, walk_all

if find_spec("tf_keras") is None or find_spec("trainwright.adapters.keras") is None:
    pytest.skip("tf-keras is not installed", allow_module_level=True)

FOLDER = Path(__file__).parent / "legacy"
BAD = sorted(FOLDER.glob("*/bad.py"))
GOOD = sorted(FOLDER.glob("*/good.py"))


# tf-keras keeps what is trained when it compiles; the walk sees a freeze after that only once a step was made.
UNSEEN = pytest.mark.xfail(strict=True, reason="not found yet")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(s, marks=[UNSEEN] if s.parent.name == "ineffective_freeze" else [], id=s.parent.name)
        for s in BAD
    ],
)
def test_the_faults_of_a_legacy_script_are_named(script: Path) -> None:
    report = walk_all(script)[0]
    first, planted = report.first_cause, all_expected(script)
    assert first is not None, said(report)
    if len(planted) == 1:
        assert (first.name, first.where and first.where.line) == planted[0], said(report)
    else:
        assert first.name == "labels-inside-inputs", said(report)
    assert sorted(loud(report)) == sorted(name for name, _ in planted), said(report)


@pytest.mark.parametrize("script", GOOD, ids=lambda s: s.parent.name)
def test_the_mended_legacy_script_is_walked_in_silence(script: Path) -> None:
    report = walk_all(script)[0]
    assert not loud(report) and not report.faulty and report.failure is None, said(report)
