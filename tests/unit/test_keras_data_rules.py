"""The edges of the rules on fit's data, on facts alone."""

from dataclasses import replace

import numpy as np
import pytest

from trainwright.adapters.keras.input.data_sets import steps_of_epochs
from trainwright.adapters.keras.input.fit_data import FitData, FitPlan
from trainwright.adapters.keras.input.reading import read_set, without_labels
from trainwright.adapters.keras.input.sources import BatchSource
from trainwright.core import Failure
from trainwright.probes.batches import measure_images
from trainwright.probes.splits.labels import batch_majority, is_one_hot, measure_labels
from trainwright.rules.batch.channels_misplaced import channels_misplaced
from trainwright.rules.batch.columns import labels_inside_inputs, missing_targets
from trainwright.rules.dataset.lengths import exhausted_data
from trainwright.rules.dataset.sorted_rows import sorted_without_shuffle
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    EpochFacts,
    ForwardFacts,
    ModuleFacts,
    SetupFacts,
    SplitFacts,
    TensorFacts,
)

pytestmark = pytest.mark.keras

SETUP = SetupFacts()
FLOATS, INTEGERS = TensorFacts(shape=(32, 6), dtype="float32"), TensorFacts(shape=(32,), dtype="int64")
ALONE = BatchFacts(rows=32, tensors={"pixels": FLOATS}, target_keys=(), targets_wanted_by="mse", accepts=("pixels",))
INSIDE = replace(ALONE, tensors={"pixels": FLOATS, "labels": INTEGERS}, accepts=("pixels", "labels"))


def _dataset(batches: int, again: int, asked: int | None, epochs: int, *, known: bool) -> DatasetFacts:
    steps = steps_of_epochs(batches, again, known=known, asked=asked, epochs=epochs)
    ends = EpochFacts(epochs=epochs, asked=asked, batches=batches, again=again, steps=steps)
    return DatasetFacts(train=SplitFacts(name="train", rows=None), epochs=ends)


@pytest.mark.parametrize(
    ("batches", "again", "asked", "epochs", "lost"),
    [
        (57, 57, 56, 10, 275),  # every second epoch has one step
        (57, 57, 56, 1, None),  # the one epoch has all it was to have
        (57, 57, 58, 10, None),  # a step of 58 short
        (57, 57, 57, 10, None),
        (60, 60, 20, 9, None),
        (57, 57, 100, 3, 129),
        (57, 57, None, 3, None),
    ],
)
def test_data_are_exhausted_where_epochs_lose_steps(batches, again, asked, epochs, lost) -> None:
    found = list(exhausted_data.function(_dataset(batches, again, asked, epochs, known=True), SETUP))
    assert [f.measured["wanted"] - f.measured["steps"] for f in found] == ([lost] if lost else [])


def test_a_generator_is_exhausted_after_its_first_pass() -> None:
    (finding,) = exhausted_data.function(_dataset(57, 2, None, 4, known=False), SETUP)
    assert "57, 2, 2, 2" in finding.message and finding.measured["wanted"] == 228
    assert not list(exhausted_data.function(_dataset(57, 2, None, 1, known=False), SETUP))
    assert not list(exhausted_data.function(_dataset(57, 2, 14, 4, known=False), SETUP))  # 56 of 57 in four epochs
    assert not list(exhausted_data.function(DatasetFacts(train=SplitFacts(name="train", rows=5)), SETUP))


def test_targets_are_missing_only_where_a_loss_wants_them() -> None:
    assert [len(list(rule.function(ALONE, SETUP))) for rule in (missing_targets, labels_inside_inputs)] == [1, 0]
    assert [len(list(rule.function(INSIDE, SETUP))) for rule in (missing_targets, labels_inside_inputs)] == [0, 1]
    for batch in (ALONE, INSIDE):
        for silent in ({"targets_wanted_by": ""}, {"target_keys": ("y",)}, {"target_keys": None}):
            assert not list(missing_targets.function(replace(batch, **silent), SETUP)), silent
            assert not list(labels_inside_inputs.function(replace(batch, **silent), SETUP)), silent


def test_a_model_that_takes_the_labels_may_be_compiled_without_a_loss() -> None:
    own = replace(INSIDE, accepts=("pixels", "labels", "mask"))
    (finding,), (plain,) = (labels_inside_inputs.function(own, SETUP), labels_inside_inputs.function(INSIDE, SETUP))
    assert "compile without a loss" in finding.fix.does and "compile without a loss" not in plain.fix.does


def _pictures(axes: tuple[int, ...], *, noise: bool = False) -> np.ndarray:
    plane = np.add.outer(np.arange(16.0), np.arange(16.0))
    pictures = np.stack([[plane * n, plane[::-1] * n, plane + n] for n in range(1, 5)])
    pictures = np.random.default_rng(0).normal(size=pictures.shape) if noise else pictures
    return np.transpose(pictures, axes)


FIRST, LAST = (0, 1, 2, 3), (0, 2, 3, 1)


def test_channels_are_found_on_the_axis_that_the_model_does_not_take_them_on() -> None:
    for axes, taken, found in ((FIRST, 3, 1), (LAST, 3, None), (FIRST, 1, None), (LAST, 1, 3)):
        facts = measure_images("x", _pictures(axes), taken)
        assert facts is not None and facts.found_at == found, (axes, taken)
    assert measure_images("x", _pictures(FIRST, noise=True), 3) is None  # features, perhaps
    assert measure_images("x", _pictures(LAST)) is None  # where the model takes them is not known


def test_misplaced_channels_are_named_where_a_convolution_is_given_them() -> None:
    images = measure_images("x", _pictures(FIRST), 3)
    batch = BatchFacts(rows=4, images=images)
    for shape, count in (((4, 3, 16, 16), 1), ((4, 16, 16, 3), 0)):  # the model moves them itself
        given = TensorFacts(shape=shape, dtype="float32")
        forward = ForwardFacts(modules=(ModuleFacts(name="conv", kind="Conv2D", inputs=(given,)),))
        assert len(list(channels_misplaced.function(batch, SETUP, forward))) == count
    refused = ForwardFacts(failure=Failure(type="ValueError", message="incompatible with the layer", where=None))
    (finding,) = channels_misplaced.function(batch, SETUP, refused)
    assert finding.repair is not None


def test_a_shuffle_of_a_few_rows_leaves_batches_of_one_class() -> None:
    labels = np.repeat(np.arange(10), 180)
    random = np.random.default_rng(0)
    order = np.argsort(np.arange(1800) + random.uniform(0, 12, 1800))
    for rows, count in ((labels[order], 1), (random.permutation(labels), 0)):
        split = SplitFacts(name="train", rows=1800, labels=measure_labels("y", rows))
        facts = DatasetFacts(train=split, shuffles=False, batch_size=64, batch_majority=batch_majority(rows, 64))
        assert len(list(sorted_without_shuffle.function(facts, SETUP))) == count
    rare = np.where(random.random(1800) < 0.05, 1, 0)  # nearly all of one class, in any order
    split = SplitFacts(name="train", rows=1800, labels=measure_labels("y", rare))
    facts = DatasetFacts(train=split, shuffles=False, batch_size=64, batch_majority=batch_majority(rare, 64))
    assert not list(sorted_without_shuffle.function(facts, SETUP))


def test_classes_given_as_rows_are_counted_as_classes() -> None:
    classes = np.arange(60) % 3
    rows = np.eye(3)[classes]
    found = measure_labels("y", rows, one_hot=True)
    assert found.kind == "class" and found.census == {0: 20, 1: 20, 2: 20} and found.per_row == 3
    several = rows.copy()
    several[0, :] = 1
    assert not is_one_hot(several) and measure_labels("y", several, one_hot=True).kind == "multi-hot"
    assert measure_labels("y", rows).kind == "multi-hot"


def test_the_weights_of_rows_are_no_inputs() -> None:
    for weights in (
        ("sample_weight",),
        ("sample_weight[0]", "sample_weight[1]"),
        ("sample_weight.a", "sample_weight.b"),
    ):
        assert without_labels(dict.fromkeys(("x", "y", *weights)), ["y"]) == ("x",)


def padded_batches():
    """Three batches of 4 rows, each as wide as its own longest row."""
    for number, width in enumerate((5, 7, 5)):
        ids = np.full((4, width), number)
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids)}, np.arange(4)


def test_rows_of_batches_with_widths_of_their_own_are_as_wide_as_the_widest() -> None:
    source = BatchSource(given=None, kind="tf.data", elements=padded_batches, rows=12, batch_size=4)
    data = FitData("train", source, FitPlan())
    assert read_set(data).read == 12
    (batch,) = data.taken([2, 4, 11]).elements()
    assert batch.x["input_ids"].tolist() == [[0] * 7, [1] * 7, [2] * 5 + [0] * 2] and batch.y.tolist() == [2, 0, 3]
    mixed = [batch.x["attention_mask"] for batch in data.shuffled_rows().elements()]
    assert {one.shape for one in mixed} == {(4, 7)} and sum(int((one == 0).sum()) for one in mixed) == 16
