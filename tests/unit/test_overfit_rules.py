"""Edges of the rules on learning one batch by heart, on facts and outcomes without a framework."""

import pytest

from trainwright.core import Finding, Outcome, Place, Trial
from trainwright.rules.optimizer.rates import excessive_weight_decay
from trainwright.rules.overfit.unlearnable_batch import unlearnable_batch
from trainwright.stages import GroupFacts, OptimizerFacts, OverfitFacts, SetupFacts
from trainwright.stages.overfit import measure_overfit

SETUP = SetupFacts(places={"model": Place("train.py", 3)}, trainable_parameters=10_000)
STUCK = tuple(1.10 + 0.01 * (i % 2) for i in range(30))


def judged(
    overfit: OverfitFacts,
    after: float | None = 1.1,
    setup: SetupFacts = SETUP,
    without_effect: bool = False,
    rate: float = 1e-3,
) -> list[Finding]:
    """What the rule finds when every trial ends at this loss; None: the budget allows none."""
    found, answer = [], None
    steps = unlearnable_batch.function(overfit, setup, OptimizerFacts(kind="AdamW", learning_rate=rate))
    try:
        while True:
            said = steps.send(answer)
            answer = None
            if isinstance(said, Trial):
                ends = (after,) * 3 if after is not None else ()
                answer = Outcome(
                    changed=said.change.does,
                    before=(1.1,) * 3 if ends else (),
                    after=ends,
                    cut_off=not ends,
                    without_effect=without_effect,
                )
            else:
                found.append(said)
    except StopIteration:
        return found


def stuck(**more) -> OverfitFacts:
    return measure_overfit(STUCK, 16, **{"constant": 1.09, **more})


def test_a_loss_that_no_rate_lowers_is_named() -> None:
    (found,) = judged(stuck())
    assert found.where == Place("train.py", 3)
    assert found.measured["constant"] == 1.09


def test_rates_that_are_all_too_low_show_nothing() -> None:
    assert not judged(stuck(), rate=1e-9)


def test_one_class_for_every_row_is_said() -> None:
    (found,) = judged(stuck(predicted_classes=1, batch_classes=3))
    assert found.message.endswith("it predicts one class for every row")


@pytest.mark.parametrize("overfit", [
    measure_overfit(tuple(1.1 - 0.02 * i for i in range(30)), 16, constant=1.09),  # falling
    measure_overfit((1.1, *[0.2] * 29), 16, constant=1.09),  # learned
    measure_overfit((1.1, *[0.9] * 29), 16, constant=1.09),  # under the constant by a sixth
    stuck(constant=None),  # a loss of its own
    stuck(floor=1.05),  # targets so smooth that there is nothing to learn
    stuck(evaluated=0.4),  # learned, but for the dropout
    measure_overfit((0.01,) * 30, 16, constant=1.09),  # learned before
])  # fmt: skip
def test_what_learns_or_cannot_be_told_is_not(overfit: OverfitFacts) -> None:
    assert judged(overfit) == []


def test_a_rate_that_learns_is_another_matter() -> None:
    assert judged(stuck(), after=0.5) == []


def test_without_time_for_trials_nothing_is_said() -> None:
    assert judged(stuck(), after=None) == []


def test_rows_are_learnt_by_heart_only_with_parameters_enough() -> None:
    few = SetupFacts(places=SETUP.places, trainable_parameters=159)
    assert judged(stuck(), setup=few) == []


def test_rates_that_the_training_never_took_prove_nothing() -> None:
    assert judged(stuck(), without_effect=True) == []


@pytest.mark.parametrize(("rate", "proven"), [(1e-3, True), (1e-5, False)])
def test_a_decay_that_pulls_hard_gets_the_steps_that_its_rate_needs(rate: float, proven: bool) -> None:
    optimizer = OptimizerFacts(kind="AdamW", learning_rate=rate, groups=(GroupFacts(tensors=4, weight_decay=100.0),))
    asked = excessive_weight_decay.function(optimizer, stuck(), SETUP)
    first = next(asked)
    assert isinstance(first, Trial)
    same = Outcome(changed="", before=(1.1, 1.1, 1.1), after=(1.09, 1.1, 1.09), start=(1.1,) * 3)
    better = Outcome(changed="", before=(0.75, 0.79, 0.74), after=(0.23, 0.28, 0.29), start=(1.1,) * 3)
    if not proven:
        assert not list(_rest(asked, same))
        return
    second = asked.send(same)
    assert isinstance(second, Trial) and second.steps > first.steps
    assert isinstance(asked.send(better), Finding)


def _rest(asked, sent):
    try:
        while True:
            yield asked.send(sent)
            sent = None
    except StopIteration:
        return
