"""When classes that one of two sets lacks are a warning, a note, or nothing."""

import pytest

from trainwright.core.finding import Severity
from trainwright.rules.dataset.missing_classes import missing_classes
from trainwright.stages.dataset import DatasetFacts, LabelFacts, SplitFacts
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts
from trainwright.stages.tensor import TensorFacts


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
