"""What counts as clearly better: beyond seed noise, on every seed, and by enough to matter."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.adapters.base import ShortRun
from trainwright.core import Outcome, Repair, Seam, Trial
from trainwright.core.trial import LOSS, WRONG_SHARE_A_CLASS, clearly_lower
from trainwright.look.trials import Trials

NAN = float("nan")
LOSSES = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("low", "high", "clear"),
    [
        ((0.5, 0.6, 0.4), (1.0, 1.1, 0.9), True),
        ((1.03, 1.0, 1.05), (17.7, 8.2, 31.6), True),  # a rate that goes astray, on each seed by another factor
        ((0.95, 0.96, 0.94), (1.0, 1.0, 1.0), False),  # sure, and too small to matter
        ((0.5, 0.5, 1.2), (1.0, 1.0, 1.0), False),  # one seed disagrees
        ((0.1, 0.9, 0.95), (1.0, 1.0, 1.0), False),  # one seed does it all
        ((0.5, 0.5, 0.5), (NAN, NAN, NAN), True),
        ((0.5, NAN, 0.5), (1.0, 1.0, 1.0), False),
        ((0.5, 0.5, 0.5), (NAN, 1.0, 0.4), False),
        ((-3.0, -3.1, -2.9), (-1.0, -1.1, -0.9), True),  # log-likelihoods of densities
        ((), (), False),
        ((0.5,), (1.0, 1.0), False),
        ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), True),
    ],
)
def test_a_difference_is_clear_beyond_noise_only(low, high, clear):
    assert clearly_lower(low, high) is clear


@given(st.lists(LOSSES, min_size=1, max_size=5))
def test_nothing_is_clearly_lower_than_itself(losses):
    assert not clearly_lower(tuple(losses), tuple(losses))


@given(st.lists(st.tuples(LOSSES, LOSSES), min_size=1, max_size=5))
def test_two_arms_are_never_both_clearly_lower(pairs):
    left, right = zip(*pairs)
    assert not (clearly_lower(left, right) and clearly_lower(right, left))


@settings(deadline=None, max_examples=20)
@given(st.floats(0.01, 1.0), st.integers(0, 2**32 - 1))
def test_pure_noise_of_any_size_rarely_passes(deviation, seed):
    random = np.random.default_rng(seed)
    arms = np.exp(deviation * random.standard_normal((2000, 2, 3)))
    passed = np.mean([clearly_lower(tuple(a), tuple(b)) for a, b in arms])
    assert passed < 0.07  # the 5 % of the test, and three standard errors of 2,000 draws


def test_an_outcome_that_was_cut_off_proves_nothing():
    outcome = Outcome(changed="", before=(), after=(), cut_off=True)
    assert not outcome.clearly_better and not outcome.clearly_worse


def made(trial, answer):
    """The outcome of a trial whose runs are answered like this."""
    trials = Trials(answer, lambda batches, changes: True, 0.001, math.inf, lambda: 0.0)
    return trials.answer(SimpleNamespace(name="some-rule"), 0, trial)


@pytest.mark.parametrize(("judged_by", "before", "after"), [(LOSS, 1.0, 0.9), (WRONG_SHARE_A_CLASS, 0.5, 1 / 3)])
def test_a_trial_is_judged_by_what_it_says(judged_by, before, after):
    """Three rows of one class and one of another; the change finds the rare one and loses two of the others."""
    change = Repair("change it", Seam.LOSS, lambda call: call)
    trial = Trial(change=change, steps=8, seeds=1, judged_by=judged_by)

    def answer(item):
        predictions = (1, 1, 0, 1) if item.changes else (0, 0, 0, 0)
        return ShortRun(losses=(0.9 if item.changes else 1.0,) * 8, predictions=predictions, labels=(0, 0, 0, 1))

    outcome = made(trial, answer)
    assert outcome.before == (pytest.approx(before),) and outcome.after == (pytest.approx(after),)
    assert outcome.judged_by == judged_by


def test_a_run_without_predictions_is_judged_by_nothing():
    trial = Trial(change=Repair("change it", Seam.LOSS, lambda call: call), seeds=1, judged_by=WRONG_SHARE_A_CLASS)
    assert not made(trial, lambda item: ShortRun(losses=(0.9,) * 16)).clearly_better


@pytest.mark.parametrize(
    ("without", "with_change", "batches", "reached"),
    [
        ((1.0, 0.9, 0.8, 0.7), (1.0, 0.9, 0.8, 0.7), 1, False),
        ((1.0, 0.9, 0.8, 0.7), (1.0, 0.9, 0.8, 0.69), 1, True),
        ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0), 1, True),  # nothing learns, whatever is changed
        ((1.0, 2.0, 1.0, 2.0), (1.0, 2.0, 1.0, 2.0), 2, True),  # nor here: two batches
        ((1.0, 2.0, 0.9, 1.8), (1.0, 2.0, 0.9, 1.8), 2, False),
    ],
)
def test_arms_that_agree_to_the_last_bit_say_that_the_change_did_not_reach_the_training(
    without, with_change, batches, reached
):
    trial = Trial(change=Repair("change it", Seam.OPTIMIZER, lambda call: call), steps=4, batches=batches, seeds=1)
    outcome = made(trial, lambda item: ShortRun(losses=with_change if item.changes else without))
    assert outcome.without_effect is not reached


def test_what_is_not_tried_for_lack_of_time_is_told():
    trials = Trials(
        lambda item: ShortRun(losses=(1.0,) * item.steps), lambda batches, changes: True, 2.5, 30.0, lambda: 0.0
    )
    assert trials.memorize() is None
    for name in ("some-rule", "some-rule", "another"):
        trial = Trial(change=Repair("change it", Seam.LOSS, lambda call: call))
        assert trials.answer(SimpleNamespace(name=name), 0, trial).cut_off
    told = "Not tried for lack of time, as one step takes 2.5 s: "
    assert trials.tell_untried() == f"{told}one batch by heart; change it (some-rule); change it (another)."


def test_what_cannot_be_tried_is_not_told_as_a_lack_of_time():
    trials = Trials(lambda item: ShortRun(), lambda batches, changes: False, 2.5, 30.0, lambda: 0.0)
    assert trials.answer(
        SimpleNamespace(name="some-rule"), 0, Trial(change=Repair("x", Seam.LOSS, lambda c: c))
    ).cut_off
    assert trials.tell_untried() == ""
