"""Which features are the label in another form, and which sound tasks only look like it."""

import numpy as np
import pytest

from trainwright.probes.labels.copies import label_copy

ROWS = 700
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ROWS, 6))
REAL = X @ RANDOM.normal(size=6) + 0.1 * RANDOM.normal(size=ROWS)
CLASSES = np.digitize(REAL, [-1.0, 1.0])
TWO = (REAL > 0).astype(int)


def found(x, y, kind, **more):
    return label_copy({"x": x, "y": y, **more}, "y", kind)


@pytest.mark.parametrize(
    ("feature", "relation"),
    [(REAL, "equal"), ((3 - 2 * REAL).astype("float32"), "affine"), (np.exp(REAL), "monotonic")],
)
def test_a_feature_that_is_a_function_of_a_real_label_is_found(feature, relation):
    seen = found(np.column_stack([X, feature]), REAL, "real")
    assert (seen.relation, seen.features, seen.rows) == (relation, (6,), ROWS)


@pytest.mark.parametrize(
    ("label", "extra", "features"),
    [
        (CLASSES, np.eye(3)[CLASSES], (6, 7, 8)),
        (CLASSES, np.asarray([0.3, -2.0, 0.7])[CLASSES], (6,)),
        (TWO, 1.0 - TWO, (6,)),
    ],
)
def test_features_with_one_value_for_each_class_are_found(label, extra, features):
    assert found(np.column_stack([X, extra]), label, "class").features == features


def test_a_column_of_single_values_is_found():
    seen = found(X, TWO, "class", grade=TWO * 10)
    assert seen.column == "grade" and not seen.features


@pytest.mark.parametrize(
    ("x", "y", "kind"),
    [
        (X, 2 * X[:, 0], "real"),  # the task is one of several independent inputs
        (X[:, :1], 2 * X[:, 0], "real"),
        (X, (X[:, 0] > 0).astype(int), "class"),  # a threshold
        (RANDOM.integers(0, 4, (ROWS, 6)).astype(float), None, "class"),  # copying
        (np.stack([np.linspace(0.1, 1, ROWS) ** n for n in (1, 2, 3)], axis=1), np.linspace(0, 5, ROWS), "real"),
        (np.eye(4)[RANDOM.integers(0, 4, ROWS)], CLASSES, "class"),  # one-hot columns of something else
        (np.column_stack([X, TWO])[:300], TWO[:300], "class"),  # two values can coincide in few rows
        (np.column_stack([X, np.where(np.arange(ROWS) == 9, 1 - TWO, TWO)]), TWO, "class"),  # all rows but one
        (np.column_stack([X, REAL + 0.01 * RANDOM.normal(size=ROWS)]), REAL, "real"),
        (np.column_stack([X, np.arange(ROWS)]), CLASSES, "class"),  # a row number
    ],
)
def test_sound_tasks_have_no_copy_of_the_label(x, y, kind):
    assert found(x, x[:, 0].astype(int) if y is None else y, kind) is None


def test_the_features_must_not_be_all_there_is():
    """One-hot inputs whose class is to be learned: nothing else tells the label."""
    assert found(np.eye(3)[CLASSES], CLASSES, "class") is None
