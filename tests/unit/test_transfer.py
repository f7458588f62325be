"""Whether evaluation rows are understood by what is learned from the training rows."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1, make_regression

from trainwright.core.finding import Severity
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.transfer import transfer_of
from trainwright.rules.dataset.pairing import misaligned_labels
from trainwright.rules.dataset.two_sets import differently_prepared_sets
from trainwright.stages.dataset import DatasetFacts, LabelFacts, Scaling, Split, SplitFacts
from trainwright.stages.rows import Rearranged, Transfer
from trainwright.stages.setup import SetupFacts


def _digits():
    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    pictures = (pictures[order] / 16).reshape(-1, 8, 8).astype(np.float32)
    return pictures[:1200], labels[order][:1200], pictures[1200:], labels[order][1200:]


def _friedman():
    x, y = make_friedman1(n_samples=900, noise=0.5, random_state=0)
    return x[:600], y[:600], x[600:], y[600:]


def _transfer(x, y, held_x, held_y):
    sets = [
        Split(name=n, rows=len(b), columns={"x": a, "y": b}, read=len(b))
        for n, a, b in (("train", x, y), ("evaluation", held_x, held_y))
    ]
    facts = [measure_split(s, ("y",), ("x",)) for s in sets]
    return transfer_of(sets[0], facts[0], sets[1], facts[1], ("x",))


@pytest.mark.parametrize("rows", [_digits, _friedman])
def test_nothing_is_said_of_rows_that_are_understood(rows):
    assert _transfer(*rows()) is None


def test_the_labels_of_the_evaluation_may_have_another_unit():
    x, y, held_x, held_y = _friedman()
    assert _transfer(x, (y - y.mean()) / y.std(), held_x, held_y) is None


def test_nothing_is_said_where_the_evaluation_labels_cannot_be_learned():
    x, y, held_x, held_y = _digits()
    assert _transfer(x, y, held_x, np.random.default_rng(0).permutation(held_y)) is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.transpose(0, 2, 1), "axes 1 and 2 of each row are exchanged"),
        (lambda t: t[:, ::-1], "axis 1 of each row is in reverse order"),
        (lambda t: 1 - t, "large values are small and small ones large"),
    ],
)
def test_the_change_of_pictures_is_found(change, what):
    x, y, held_x, held_y = _digits()
    seen = _transfer(x, y, change(held_x), held_y)
    assert seen.rearranged.what == what
    assert seen.gain < 0.3 < 0.7 < seen.rearranged.gain


def test_columns_are_recognised_by_their_values():
    x, y = make_regression(n_samples=900, n_features=6, n_informative=4, noise=5, random_state=0)
    x = x * [1, 5, 20, 1, 3, 9] + [0, 30, -10, 8, 4, 0]
    seen = _transfer(x[:600], y[:600], x[600:][:, [2, 0, 1, 5, 3, 4]], y[600:])
    assert seen.rearranged.what == "their columns are in another order"


def test_classes_with_other_numbers_are_found_with_their_numbers():
    x, y, held_x, held_y = _digits()
    seen = _transfer(x, y, held_x, np.where(held_y == 3, 7, np.where(held_y == 7, 3, held_y + 0)))
    assert seen is None  # most rows are understood
    seen = _transfer(x, y, held_x, (held_y + 1) % 10)
    assert dict(seen.renumbered)[0] == 1
    assert seen.rearranged is None


def test_rows_of_words_are_compared_by_their_words():
    random = np.random.default_rng(0)
    words = np.asarray([f"word{i}" for i in range(60)])
    labels = random.integers(0, 3, 900)
    texts = [" ".join(random.choice(words[20 * y : 20 * y + 30 if y < 2 else 60], 12)) for y in labels]
    assert _transfer(texts[:600], labels[:600], texts[600:], labels[600:]) is None
    assert _transfer(texts[:600], labels[:600], texts[600:], (labels[600:] + 1) % 3).renumbered


def test_rows_of_another_origin_have_no_change_that_explains_them():
    random = np.random.default_rng(0)
    x = random.normal(size=(900, 8))
    y = np.where(np.arange(900) < 600, x[:, 0] > 0, x[:, 1] > 0).astype(int)
    seen = _transfer(x[:600], y[:600], x[600:], y[600:])
    assert seen is not None
    assert seen.rearranged is None
    assert not seen.renumbered


SEEN = Transfer(kind="class", rows=200, gain=0.0, training_gain=0.9, evaluation_gain=0.8)
REVERSED = Rearranged(what="their columns are in reverse order", gain=0.85, deviations=20.0)
RENUMBERED = Transfer(
    kind="class",
    rows=200,
    gain=-0.5,
    training_gain=0.9,
    evaluation_gain=0.8,
    renumbered=((0, 1), (1, 0)),
    renumbered_gain=0.9,
)
RAW = Scaling(
    column="x", mean=0.0, deviation=1.0, evaluation_mean=90.0, evaluation_deviation=30.0, far_share=1.0,
    training_is_scaled=True, error=1.4, error_rescaled=0.2, gain=0.8, gain_deviations=20.0, rows=200,
)  # fmt: skip


def _severities(rule, transfer, classes=3, **facts):
    labels = LabelFacts(column="y", kind="class", census=dict.fromkeys(range(classes), 100))
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=300, labels=labels), transfer=transfer, **facts)
    given = (dataset, SetupFacts(), None) if rule is differently_prepared_sets else (dataset, SetupFacts())
    return ["note" if f.severity == Severity.NOTE else "warning" for f in rule.function(*given)]


def test_only_a_change_that_explains_it_is_more_than_a_note():
    explained = Transfer(kind="class", rows=200, gain=0.0, training_gain=0.9, evaluation_gain=0.8, rearranged=REVERSED)
    assert _severities(differently_prepared_sets, explained) == ["warning"]
    assert _severities(differently_prepared_sets, SEEN) == ["note"]
    assert _severities(differently_prepared_sets, RENUMBERED) == []
    assert _severities(differently_prepared_sets, SEEN, scaling=RAW) == []


def test_two_classes_that_change_places_are_a_note():
    """A feature that tells them in training tells the opposite where a correlation is reversed on purpose."""
    assert _severities(misaligned_labels, RENUMBERED) == ["warning"]
    assert _severities(misaligned_labels, RENUMBERED, classes=2) == ["note"]
    assert _severities(misaligned_labels, SEEN) == []
