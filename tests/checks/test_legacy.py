"""The TensorFlow models of transformers 4 and tf-keras, in an environment of their own: `scripts/test --only legacy`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import all_expected, check_script, loud, said
from trainwright.core import Severity
from twins import find_scripts

if find_spec("tf_keras") is None or find_spec("trainwright.adapters.keras.first_update") is None:
    pytest.skip("tf-keras is not installed", allow_module_level=True)

FOLDER = Path(__file__).parents[1] / "legacy"
BAD = sorted(FOLDER.glob("*/bad.py"))
GOOD = find_scripts(FOLDER, "*/good.py")


@pytest.mark.parametrize("script", BAD, ids=lambda s: s.parent.name)
def test_the_faults_of_a_legacy_script_are_named_in_order_at_their_lines(script: Path) -> None:
    report = check_script(script)
    found = [f for f in report.findings if f.severity != Severity.NOTE]
    places = sorted((f.name, f.where.line) for f in found if f.where)
    assert places == sorted(all_expected(script)), said(report)
    assert [f.code for f in found] == sorted(f.code for f in found), said(report)
    assert report.first_cause is found[0]


@pytest.mark.parametrize("script", GOOD, ids=lambda s: s.parent.name)
def test_the_mended_legacy_script_is_checked_in_silence(script: Path) -> None:
    report = check_script(script)
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


def test_gradients_of_some_rows_of_a_table_are_compared_as_a_table() -> None:
    """TensorFlow gives an Embedding's gradient as its rows alone, of which NumPy made one object."""
    import numpy as np
    import tensorflow as tf

    from trainwright.tensors.keras.keras2 import Keras2

    table = tf.Variable(tf.ones((4, 2)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 3, 3]))
    gradient = Keras2().module.ops.convert_to_numpy(tape.gradient(loss, table))
    assert np.array_equal(gradient, [[0, 0], [1, 1], [0, 0], [2, 2]])
