"""Edges of misassigned-class-weights, on facts without a framework."""

import pytest

from trainwright.core import Place, Severity
from trainwright.rules.loss.misassigned_class_weights import misassigned_class_weights
from trainwright.stages import DatasetFacts, LabelFacts, LossCall, LossFacts, SetupFacts, SplitFacts, TensorFacts


def judged(weights, census, function="cross_entropy"):
    tensor = TensorFacts(shape=(8,), dtype="float32")
    call = LossCall(
        function=function,
        inputs=tensor,
        targets=tensor,
        at=Place("train.py", 3),
        class_weights=dict(enumerate(weights)),
    )
    labels = LabelFacts(column="label", kind="class", census=dict(enumerate(census)), counted=sum(census))
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=sum(census), labels=labels))
    return list(misassigned_class_weights.function(LossFacts(call=call), dataset, SetupFacts()))


@pytest.mark.parametrize(
    ("weights", "census"),
    [
        ((1.0, 0.11), (900, 100)),  # positives / negatives
        ((0.9, 0.1), (900, 100)),  # each class's share
        ((0.56, 0.37, 1.11, 3.33), (100, 600, 900, 300)),  # inverse counts, sorted
        ((1.0, 2.0, 4.1), (400, 200, 100)[::-1]),
        ((0.1, 0.6, 0.3), (100, 590, 310)),
    ],
)
def test_weights_of_other_classes_are_named(weights, census):
    (found,) = judged(weights, census)
    assert found.where == Place("train.py", 3) and found.severity == Severity.WARNING


@pytest.mark.parametrize(("weights", "census"), [((1.0, 0.02), (900, 100)), ((8.0, 1.0, 40.0), (200, 100, 300))])
def test_weights_that_grow_with_the_counts_are_a_note(weights, census):
    (found,) = judged(weights, census)
    assert found.severity == Severity.NOTE and found.repair is None


@pytest.mark.parametrize(
    ("weights", "census"),
    [
        ((1.0, 9.0), (900, 100)),
        ((0.1, 0.9), (900, 100)),
        ((1.0, 3.0), (900, 100)),  # the root
        ((1.0, 5.0), (900, 100)),  # chosen
        ((1.0, 0.5), (900, 100)),  # chosen, for precision
        ((1.0, 1.1), (520, 480)),  # nearly balanced
        ((1.0, 0.9), (520, 480)),
        ((1.0, 1.0, 2.0), (300, 300, 100)),
        ((1.0, 0.11), (900, 0)),  # a class without rows
        ((1.0, 2.0, 3.0), (900, 100)),  # another number of classes
        ((0.0, 1.0), (900, 100)),
    ],
)
def test_others_are_not(weights, census):
    assert judged(weights, census) == []
