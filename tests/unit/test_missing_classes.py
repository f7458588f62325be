"""When classes that one of two sets lacks are a warning, a note, or nothing."""

from dataclasses import replace

import pytest

from trainwright.core import Place, Severity
from trainwright.rules.dataset.classes import missing_classes
from trainwright.rules.loss.label_range import label_out_of_range
from trainwright.stages import (
    DatasetFacts,
    ForwardFacts,
    LabelFacts,
    LossCall,
    LossFacts,
    SetupFacts,
    SplitFacts,
    TensorFacts,
)


def _set(name, census):
    labels = LabelFacts(column="y", kind="class", census=census, counted=sum(census.values()))
    return SplitFacts(name=name, rows=sum(census.values()), labels=labels, labels_complete=True)


def _found(train, held, outputs=None):
    dataset = DatasetFacts(train=_set("train", train), evaluation=_set("evaluation", held) if held else None)
    scores, targets = TensorFacts(shape=(8, outputs or 2), dtype="float32"), TensorFacts(shape=(8,), dtype="int64")
    call = LossCall(function="cross_entropy", inputs=scores, targets=targets, at=None)
    loss = LossFacts(function="cross_entropy", call=call, classes=outputs, targets_are_labels=True) if outputs else None
    return [
        "note" if f.severity == Severity.NOTE else "warning"
        for f in missing_classes.function(dataset, SetupFacts(), loss)
    ]


TEN = dict.fromkeys(range(10), 40)


@pytest.mark.parametrize(
    ("train", "held", "outputs", "severities"),
    [
        (TEN, TEN, None, []),
        ({0: 5, 1: 2, 2: 1}, TEN, None, ["warning"]),  # eight rows for ten classes
        (dict.fromkeys(range(9), 40), TEN, None, ["warning"]),
        ({0: 500, 1: 300}, {0: 200, 1: 150, 2: 3}, None, []),  # a rare class, absent by chance
        (TEN, {9: 36}, None, ["note"]),
        ({0: 990, 1: 10}, {0: 40}, None, []),  # a frequent class alone, by chance
    ],
)
def test_classes_that_one_set_lacks(train, held, outputs, severities):
    assert _found(train, held, outputs) == severities


@pytest.mark.parametrize(
    ("train", "outputs", "severities"),
    [
        (TEN, 11, ["note"]),
        (TEN, 10, []),
        (TEN, 40, []),  # a head of its own size
        ({0: 3, 1: 4, 2: 5}, 4, []),  # few rows, of which chance may have left one out
    ],
)
def test_an_output_for_a_class_that_no_row_has(train, outputs, severities):
    assert _found(train, None, outputs) == severities


def test_an_evaluation_set_without_labels_is_said_to_have_none() -> None:
    dataset = DatasetFacts(train=_set("train", TEN), evaluation=_set("evaluation", {-1: 100}))
    (found,) = missing_classes.function(dataset, SetupFacts(), None)
    assert found.message.startswith("the evaluation set has no labels: all 100 of them are -1")
    assert _found(TEN, {-1: 100}, 10) == []  # the loss raises: label-out-of-range says it
    targets = TensorFacts(shape=(8,), dtype="int64")
    call = LossCall(
        function="cross_entropy", inputs=TensorFacts(shape=(8, 10), dtype="float32"), targets=targets, at=None
    )
    loss = LossFacts(function="cross_entropy", call=call, classes=10, targets_are_labels=True)
    (raising,) = label_out_of_range.function(dataset, SetupFacts(), ForwardFacts(), loss)
    assert raising.message == found.message
    made, given = Place("train.py", 3), Place("train.py", 9)
    places = SetupFacts(places={"eval_dataset_made": made, "eval_dataset": given})
    (placed,) = label_out_of_range.function(dataset, places, ForwardFacts(), loss)
    assert placed.where == given  # the set is as it should be; it is given to the wrong thing
    ignoring = replace(loss, call=replace(call, options={"ignore_index": -1}))
    assert list(label_out_of_range.function(dataset, SetupFacts(), ForwardFacts(), ignoring)) == []
    outliers = DatasetFacts(train=_set("train", {-1: 5, 1: 300}), evaluation=_set("evaluation", {-1: 100}))
    assert not any("no labels" in f.message for f in missing_classes.function(outliers, SetupFacts(), None))
