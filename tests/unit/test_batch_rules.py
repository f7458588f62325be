"""Edges of the batch rules' thresholds, on facts literals."""

import numpy as np
import pytest

from trainwright.adapters.keras.input.batch import _kind
from trainwright.adapters.keras.input.fit_data import fit_data
from trainwright.adapters.keras.input.reading import read_set
from trainwright.adapters.keras.words import WORDS
from trainwright.core import Failure, Place, Severity
from trainwright.rules.batch.masked_labels import all_labels_masked
from trainwright.rules.batch.masks import mismatched_mask
from trainwright.rules.batch.unequal_lengths import ragged_batch
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, SetupFacts, SplitFacts, TensorFacts

PLACES = {"train_dataset": Place("train.py", 3), "collator": Place("train.py", 7)}
SETUP = SetupFacts(places=PLACES)
DATA = DatasetFacts(train=SplitFacts(name="train", rows=10))
TOKENS = {k: TensorFacts(shape=(10, 10), dtype="int64") for k in ("input_ids", "attention_mask")}


def _batch(**more):
    return BatchFacts(tensors=TOKENS, pad_id=0, **more)


def _found(rule, **facts):
    return list(rule.function(**facts))


@pytest.mark.parametrize(("let_in", "severities"), [(4, []), (5, [Severity.WARNING])])
def test_a_twentieth_of_the_positions_must_be_padding_let_in(let_in, severities) -> None:
    batch = _batch(attended_padding=let_in, padding_tokens=40)
    found = _found(mismatched_mask, batch=batch, setup=SETUP, forward=None)
    assert [f.severity for f in found] == severities


@pytest.mark.parametrize(("changes", "count"), [(None, 1), (0.002, 1), (0.0005, 0)])
def test_padding_let_in_that_changes_no_score_is_left_alone(changes, count) -> None:
    forward = ForwardFacts(padding_let_in_changes=changes)
    batch = _batch(attended_padding=40, padding_tokens=40)
    assert len(_found(mismatched_mask, batch=batch, setup=SETUP, forward=forward)) == count


@pytest.mark.parametrize(
    ("let_in", "hidden", "severity"),
    [(40, 60, Severity.ERROR), (36, 54, Severity.ERROR), (35, 60, Severity.WARNING), (40, 53, Severity.WARNING)],
)
def test_a_mask_is_inverted_where_nine_tenths_of_both_sides_are(let_in, hidden, severity) -> None:
    batch = _batch(attended_padding=let_in, hidden_tokens=hidden, padding_tokens=40)
    [found] = _found(mismatched_mask, batch=batch, setup=SETUP, forward=None)
    assert found.severity == severity


@pytest.mark.parametrize(("by_collator", "line"), [(True, 7), (False, 3)])
def test_the_line_is_that_of_what_made_the_mask(by_collator, line) -> None:
    batch = _batch(attended_padding=40, hidden_tokens=60, padding_tokens=40, collator_masks=by_collator)
    [found] = _found(mismatched_mask, batch=batch, setup=SETUP, forward=None)
    assert found.where == Place("train.py", line)


@pytest.mark.parametrize(("kind", "count"), [("list", 0), ("object array of list", 1)])
def test_only_arrays_of_objects_cannot_become_a_tensor_once_the_batch_is_formed(kind, count) -> None:
    """A list of tensors of several lengths is no fault: forward may pack the sequence itself."""
    batch = _batch(others={"tokens": kind}, item_lengths={"tokens": (3, 5)})
    assert len(_found(ragged_batch, batch=batch, setup=SETUP, dataset=DATA)) == count


def test_rows_that_numpy_refused_to_stack_are_unequal() -> None:
    said = "Error in user-defined function passed to MapDataset\nValueError: all input arrays must have the same shape"
    failure = Failure(type="InvalidArgumentError", message=said, where=None)
    [found] = _found(ragged_batch, batch=_batch(failure=failure, collator="tf.data"), setup=SETUP, dataset=DATA)
    assert found.where is not None and "to_tf_dataset" in found.fix.does


@pytest.mark.parametrize(("rows", "told"), [([[1, 2], [3]], False), ([[1, 2], [0.5]], True)])
def test_rows_of_fractions_are_padded_as_floats(rows, told) -> None:
    """pad_sequences makes integers unless it is told otherwise: rows in 0 to 1 would all become zeros."""
    kind = _kind(np.array(rows, dtype=object))
    batch = _batch(others={"x": kind}, item_lengths={"x": (2, 1)})
    [found] = _found(ragged_batch, batch=batch, setup=SetupFacts(words=WORDS), dataset=DATA)
    assert ('dtype="float32"' in found.fix.does) == told


@pytest.mark.parametrize(
    ("rows", "all_rows", "severities"), [(0, False, []), (64, False, [Severity.WARNING]), (64, True, [Severity.ERROR])]
)
def test_weights_of_zero_are_an_error_where_every_row_was_read(rows, all_rows, severities) -> None:
    batch = _batch(weightless_rows=rows, all_weightless=all_rows)
    found = _found(all_labels_masked, batch=batch, dataset=DATA, setup=SETUP)
    assert [f.severity for f in found] == severities


@pytest.mark.parametrize(("labelled", "expected"), [(0, (2000, True)), (3, (0, False))])
@pytest.mark.parametrize("streamed", [False, True])
def test_weights_are_read_beyond_the_first_batches(labelled, expected, streamed) -> None:
    """Of many rows without a label, which the weight 0 leaves out, the first batches may hold nothing else."""
    weight = np.zeros(2000)
    weight[2000 - labelled :] = 1
    given = {"x": np.zeros((2000, 2)), "y": np.zeros(2000), "sample_weight": weight, "batch_size": 4}
    data = fit_data({**given, "shuffle": False})
    if streamed:
        data = data.changed(lambda row, number: row)
        read_set(data)
    assert data.weightless_rows() == expected
