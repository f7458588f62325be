"""What the probe of the profile reads, on arrays whose information is known."""

import numpy as np
import pytest

from trainwright.probes.information import read_given, read_station, sketch, targets_for
from trainwright.stages import Information, Station
from trainwright.stages.learning import POWER, READABLE, UNREADABLE

ROWS = 450


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, ROWS)
    inputs = random.standard_normal((ROWS, 20)) + 1.5 * np.eye(3, 20)[labels]
    return inputs.astype(np.float32), labels


@pytest.mark.parametrize("shape", [(ROWS, 40), (ROWS, 5, 40), (ROWS, 40, 4, 4), (ROWS, 30_000)])
def test_a_result_that_holds_the_label_is_read_whatever_its_shape(rows, shape) -> None:
    inputs, labels = rows
    width = int(np.prod(shape[1:]))
    made = inputs @ np.random.default_rng(1).standard_normal((20, width)).astype(np.float32)
    reading = read_station("", sketch(made.reshape(shape)), targets_for(labels, classes=True))
    assert reading.score > READABLE
    assert reading.accuracy > 0.6 > 0.4 > reading.permuted


def test_noise_and_constants_are_silent(rows) -> None:
    _, labels = rows
    targets = targets_for(labels, classes=True)
    random = np.random.default_rng(2)
    for seed in range(10):
        noise = np.random.default_rng(seed).standard_normal((ROWS, 64))
        assert read_station("", sketch(noise), targets).score < UNREADABLE
    assert read_station("", np.ones((ROWS, 8)), targets).score == 0.0
    nearly = np.float32(7) + 1e-7 * random.standard_normal((ROWS, 8)).astype(np.float32)
    assert read_station("", nearly, targets).score == 0.0


def test_numbers_are_read_by_their_ranks(rows) -> None:
    inputs, _ = rows
    targets = targets_for(np.exp(inputs[:, 0]), classes=False)
    assert not targets.classes
    reading = read_station("", sketch(inputs), targets)
    assert reading.score > READABLE
    assert reading.share > 0.7
    assert reading.accuracy is None


def test_planted_labels_show_what_could_be_read(rows) -> None:
    """Silence means something where labels planted into the same inputs are read."""
    inputs, labels = rows
    shuffled = targets_for(np.random.default_rng(3).permutation(labels), classes=True)
    found = read_given({"x": list(inputs)}, shuffled)
    assert found.given.score < UNREADABLE
    assert found.power > POWER


@pytest.mark.parametrize("labels", [[1] * 450, [0] * 440 + [1] * 10, list(range(450))])
def test_labels_that_no_probe_could_learn_are_no_targets(labels) -> None:
    assert targets_for(np.asarray(labels), classes=True) is None


def station(score: float) -> Station:
    return Station(name=str(score), score=score, share=0.5)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((50, 40, 1, 2), ("40", "1")),
        ((50, 1, 40, 30), None),  # a branch that does not carry the label
        ((50, 40, 5, 1), None),  # neither told nor silent
        ((1, 1, 1), None),
        ((50, 40), None),
    ],
)
def test_the_label_is_lost_where_everything_behind_is_silent(scores, expected) -> None:
    first, *others = map(station, scores)
    found = Information(rows=ROWS, power=9.0, given=first, stations=tuple(others))
    assert (tuple(s.name for s in found.lost) if found.lost else None) == expected
