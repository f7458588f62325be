"""The TensorFlow models of transformers 4 and tf-keras, in an environment of their own: `make test-legacy`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from trainwright.core.finding import Severity
from walking import all_expected, loud, said, walk_all

if find_spec("tf_keras") is None or find_spec("trainwright.adapters.keras") is None:
    pytest.skip("tf-keras is not installed", allow_module_level=True)

FOLDER = Path(__file__).parent / "legacy"
BAD = sorted(FOLDER.glob("*/bad.py"))
GOOD = sorted(FOLDER.glob("*/good.py"))
# The proof of the default rate takes six short trainings of a 40-million-parameter model.
BUDGET = 300.0


@pytest.mark.parametrize("script", BAD, ids=lambda s: s.parent.name)
def test_the_faults_of_a_legacy_script_are_named_in_order_at_their_lines(script: Path) -> None:
    report = walk_all(script, budget=BUDGET)[0]
    found = [f for f in report.findings if f.severity != Severity.NOTE]
    places = sorted((f.name, f.where.line) for f in found if f.where)
    assert places == sorted(all_expected(script)), said(report)
    assert [f.code for f in found] == sorted(f.code for f in found), said(report)
    assert report.first_cause is found[0]


@pytest.mark.parametrize("script", GOOD, ids=lambda s: s.parent.name)
def test_the_mended_legacy_script_is_walked_in_silence(script: Path) -> None:
    report = walk_all(script)[0]
    assert not loud(report) and not report.faulty and report.failure is None, said(report)


def test_check_takes_a_model_of_tf_keras_and_puts_it_back() -> None:
    import numpy as np
    import tf_keras as keras

    import trainwright

    images, target = np.random.default_rng(0).normal(size=(64, 8)).astype("float32"), np.arange(64) % 3
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    report = trainwright.check(model, x=images, y=target, batch_size=16, epochs=2)
    assert report.first_cause is not None and report.first_cause.name == "wrong-logits-flag", said(report)
    assert not report.internal_errors and not model.built
