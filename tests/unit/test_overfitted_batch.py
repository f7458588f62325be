"""What is said of the batch that the overfit stage learns by heart, and when it counts as learned."""

import numpy as np
import pytest

from trainwright.probes.constant import all_hits, hits_of_call, hits_of_classes
from trainwright.stages import OverfitFacts
from trainwright.stages.describe import describe
from trainwright.stages.overfit import Hits, measure_overfit

FALLING = tuple(1.1 - 0.02 * i for i in range(30))
MIXED = {0: 9, 1: 7}


def falling(**more) -> OverfitFacts:
    return measure_overfit(FALLING, 16, **{"constant": 1.09, **more})


def right(count: int, *, of: int = 16, by_constant: int = 9) -> Hits:
    return Hits(right=count, answers=of, by_constant=by_constant)


@pytest.mark.parametrize(("facts", "learned"), [
    (falling(), False),  # nothing but falling
    (falling(hits=right(15)), False),
    (falling(hits=right(16)), True),
    (falling(hits=right(16, by_constant=16)), False),  # one label: a constant answer is right as well
    (measure_overfit((1.1, *[0.2] * 29), 16, constant=1.09, hits=right(9)), True),  # the loss is near its floor
    (falling(hits=right(1010, of=1024, by_constant=600)), True),  # positions of text
    (falling(hits=right(1000, of=1024, by_constant=990)), False),  # hardly more than the most frequent token
])  # fmt: skip
def test_a_batch_counts_as_learned_by_its_answers_or_its_floor(facts: OverfitFacts, learned: bool) -> None:
    assert facts.by_heart == learned


@pytest.mark.parametrize(("facts", "said"), [
    (falling(hits=right(12), labels=MIXED),
     "falling; learned by heart: 12 of 16; its 16 rows hold labels 0: 9, 1: 7"),
    (falling(hits=right(16, by_constant=16), labels={1: 16}),
     "learned by heart: 16 of 16; all its 16 rows have one label, 1, so that a constant answer is right"),
    (falling(hits=right(300, of=1024)), "learned by heart: 300 of 1,024 positions"),
    (falling(hits=Hits(right=40, answers=48, by_constant=30, of_labels=True)), "learned by heart: 40 of 48 labels"),
    (falling(evaluated=0.4), "; at its end 0.4, the best constant answer has 1.09"),
    (falling(labels=dict.fromkeys(range(12), 2)), "; its 16 rows hold 12 labels, 2 rows each"),
    (measure_overfit((1.1, *[0.2] * 29), 16, constant=1.09, hits=right(9)), "learned; in evaluation mode right: 9 of 16"),
])  # fmt: skip
def test_the_row_says_what_the_batch_holds_and_what_of_it_was_learned(facts: OverfitFacts, said: str) -> None:
    assert describe(facts).endswith(said)


def test_answers_are_counted_as_the_loss_reads_them() -> None:
    scores = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    assert hits_of_call("cross_entropy", scores, np.array([0, 1, 1])) == Hits(right=2, answers=3, by_constant=2)
    ignored = hits_of_call("cross_entropy", scores, np.array([0, -100, 1]))
    assert ignored == Hits(right=1, answers=2, by_constant=1)
    by_pixel = hits_of_call("cross_entropy", np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 4), dtype=np.int64))
    assert by_pixel == Hits(right=32, answers=32, by_constant=32)
    labels = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    several = hits_of_call("binary_cross_entropy_with_logits", scores - 1.5, labels)
    assert several == Hits(right=4, answers=6, by_constant=4, of_labels=True)
    assert hits_of_call("mse_loss", scores, scores) is None
    assert hits_of_call("cross_entropy", scores, np.array([0, 1])) is None
    assert hits_of_classes([1, 0], [1, 1]) == Hits(right=1, answers=2, by_constant=2)
    assert hits_of_classes([], []) is None and all_hits([None]) is None and all_hits([]) is None
