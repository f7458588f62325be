"""Whether the classes of evaluation rows have the numbers that the training rows teach."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1

from trainwright.core import Severity
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.transfer import transfer_of
from trainwright.rules.dataset.pairing import misaligned_labels
from trainwright.stages import DatasetFacts, LabelFacts, SetupFacts, Split, SplitFacts, Transfer


def _digits():
    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    pictures = (pictures[order] / 16).reshape(-1, 8, 8).astype(np.float32)
    return pictures[:1200], labels[order][:1200], pictures[1200:], labels[order][1200:]


def _transfer(x, y, held_x, held_y):
    sets = [
        Split(name=n, rows=len(b), columns={"x": a, "y": b}, read=len(b))
        for n, a, b in (("train", x, y), ("evaluation", held_x, held_y))
    ]
    facts = [measure_split(s, ("y",), ("x",)) for s in sets]
    return transfer_of(sets[0], facts[0], sets[1], facts[1], ("x",))


def test_nothing_is_said_of_rows_that_are_understood():
    assert _transfer(*_digits()) is None


def test_nothing_is_said_of_labels_that_are_numbers():
    x, y = make_friedman1(n_samples=900, noise=0.5, random_state=0)
    assert _transfer(x[:600], y[:600], x[600:], -y[600:]) is None


def test_nothing_is_said_where_the_evaluation_labels_cannot_be_learned():
    x, y, held_x, held_y = _digits()
    assert _transfer(x, y, held_x, np.random.default_rng(0).permutation(held_y)) is None


@pytest.mark.parametrize("change", [lambda t: t.transpose(0, 2, 1), lambda t: t[:, ::-1], lambda t: 1 - t])
def test_pictures_that_are_prepared_otherwise_have_no_classes_with_other_numbers(change):
    x, y, held_x, held_y = _digits()
    assert _transfer(x, y, change(held_x), held_y) is None


def test_classes_with_other_numbers_are_found_with_their_numbers():
    x, y, held_x, held_y = _digits()
    seen = _transfer(x, y, held_x, np.where(held_y == 3, 7, np.where(held_y == 7, 3, held_y + 0)))
    assert seen is None  # most rows are understood
    seen = _transfer(x, y, held_x, (held_y + 1) % 10)
    assert dict(seen.renumbered)[0] == 1


def test_rows_of_words_are_compared_by_their_words():
    random = np.random.default_rng(0)
    words = np.asarray([f"word{i}" for i in range(60)])
    labels = random.integers(0, 3, 900)
    texts = [" ".join(random.choice(words[20 * y : 20 * y + 30 if y < 2 else 60], 12)) for y in labels]
    assert _transfer(texts[:600], labels[:600], texts[600:], labels[600:]) is None
    assert _transfer(texts[:600], labels[:600], texts[600:], (labels[600:] + 1) % 3).renumbered


def test_rows_of_another_origin_have_no_numbers_that_explain_them():
    random = np.random.default_rng(0)
    x = random.normal(size=(900, 8))
    y = np.where(np.arange(900) < 600, x[:, 0] > 0, x[:, 1] > 0).astype(int)
    assert _transfer(x[:600], y[:600], x[600:], y[600:]) is None


RENUMBERED = Transfer(rows=200, gain=-0.5, renumbered=((0, 1), (1, 0)), renumbered_gain=0.9)


def _severities(transfer, classes=3):
    labels = LabelFacts(column="y", kind="class", census=dict.fromkeys(range(classes), 100))
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=300, labels=labels), transfer=transfer)
    return [found.severity for found in misaligned_labels.function(dataset, SetupFacts())]


def test_two_classes_that_change_places_are_a_note():
    """A feature that tells them in training tells the opposite where a correlation is reversed on purpose."""
    assert _severities(RENUMBERED) == [Severity.WARNING]
    assert _severities(RENUMBERED, classes=2) == [Severity.NOTE]
    assert _severities(None) == []
