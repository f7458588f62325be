"""Which movement relates two draws of a row, and whether one relates both the input's and the target's."""

import numpy as np
import pytest

from trainwright.core import Severity
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import DrawnAgain
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.dense_rows import DenseRows
from trainwright.review.questions.apart_transforms import apart_transforms

RANDOM = np.random.default_rng(0)


def row(shape=(24, 24)):
    """A picture or a signal with noise, and a mask at a place of its own."""
    mask = np.zeros(shape)
    down, right = RANDOM.integers(0, max(1, shape[0] - 8)), RANDOM.integers(0, shape[1] // 3)
    mask[down : down + 6, right : right + 7] = 1
    return mask + RANDOM.normal(0, 0.4, shape), mask


def said(change, both, shape=(24, 24), made=row):
    pairs = []
    for _ in range(20):
        x, y = made(shape)
        pairs.append((x, change(x), y, change(y) if both else y))
    drawn = DrawnAgain(columns=("image", "mask"), where=None, pairs=pairs)
    return [found.measured["apart"] for found in apart_transforms.function(Record(drawn_again=[drawn]))]


MOVED = {
    "mirrored": (lambda one: one[:, ::-1], (24, 24)),
    "turned": (np.rot90, (24, 24)),
    "not square": (lambda one: one[::-1, ::-1], (12, 30)),
    "reversed": (lambda one: one[:, ::-1], (1, 80)),
    "shifted": (lambda one: np.roll(one, 9, 1), (1, 80)),
}


@pytest.mark.parametrize(("change", "shape"), MOVED.values(), ids=MOVED)
def test_apart_and_together(change, shape):
    assert said(change, True, shape) == []
    assert said(change, False, shape) and said(change, False, shape)[0] > 10


def test_what_says_nothing():
    def symmetric(shape):
        return row(shape)[0], np.pad(np.ones((8, 8)), 8)

    def empty(shape):
        return row(shape)[0], np.zeros(shape)

    def itself(shape):
        return (row(shape)[0],) * 2

    mirrored = MOVED["mirrored"][0]
    for made in (symmetric, empty, itself):
        assert said(mirrored, False, made=made) == []
    assert said(lambda one: RANDOM.normal(0, 1, one.shape), False) == []
    assert said(lambda one: np.roll(one, 1, 0), False) == []
    assert apart_transforms.severity == Severity.WARNING


def drawn(columns, again, numbers=range(20), targets=()):
    recorder = Recorder()
    dense = DenseRows(recorder, lambda: targets)
    for read in (columns, again):
        dense.note(recorder, read, numbers, None)
    dense.finish()
    assert not recorder.finish().watcher_errors
    return recorder.record.drawn_again


def test_draws():
    image, mask = RANDOM.normal(size=(20, 3, 64, 80)), RANDOM.integers(0, 2, (20, 64, 80))
    columns, other = {"image": image, "mask": mask, "label": mask[:, 0, 0]}, {"image": image[..., ::-1], "mask": mask}
    (found,) = drawn(columns, other)
    assert (found.columns, len(found.pairs), found.pairs[0][0].shape) == (("image", "mask"), 20, (32, 26))
    assert len(drawn(columns, other, None)[0].pairs) == 20  # told apart by their values
    assert drawn(columns, columns) == []
    assert drawn({"one": image, "other": image + 1}, {"one": image, "other": image[..., ::-1]}) == []  # two inputs
    assert drawn({"one": image, "other": image + 1}, {"one": image, "other": image[..., ::-1]}, targets=("other",))
    assert drawn({"x": image[:, 0, 0], "y": mask[:, 0, :16]}, {"x": image[:, 0, 0], "y": mask[:, 1, :16]}) == []


def test_rows_that_are_read_again():
    recorder = Recorder()
    dense = DenseRows(recorder, lambda: ("y",))
    x, y = RANDOM.normal(size=(10, 30)), RANDOM.normal(size=(10, 30))
    dense.note(recorder, {"x": x, "y": y}, range(10), None, lambda numbers: {"x": x[numbers], "y": y[numbers, ::-1]})
    dense.finish()
    assert len(recorder.record.drawn_again[0].pairs) == 10
