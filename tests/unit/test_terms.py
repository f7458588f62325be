"""A loss is taken apart into its terms; one that is far above chance is no tick, and its largest term is named."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from trainwright.adapters.torch.loss import loss_facts
from trainwright.core import Severity
from trainwright.rules.loss.values import unequal_loss_terms
from trainwright.seams.failures.blame import own_errors
from trainwright.seams.torch.observer import Observer
from trainwright.seams.torch.terms import TermWatch
from trainwright.stages import LossFacts, SetupFacts
from trainwright.stages.describe import describe


def _line(text: str) -> int:
    """The line of this file that holds a comment."""
    return next(n for n, line in enumerate(Path(__file__).read_text().split("\n"), 1) if line.endswith(f"# {text}"))


def _penalty(loss, hidden):
    penalty = (1e3 * hidden**2).sum()  # penalty
    return loss + penalty


def facts(combine) -> LossFacts:
    """The loss facts of one step whose loss is made of a cross entropy and hidden values."""
    torch.manual_seed(0)
    body, head = nn.Linear(4, 5), nn.Linear(5, 3)
    with Observer(nn.Sequential(body, head), detail=True).catching() as record:
        hidden = body(torch.randn(8, 4))
        combine(F.cross_entropy(head(hidden), torch.randint(0, 3, (8,))), hidden).backward()
    record.loss = record.minimised[0]
    found = loss_facts(record, {})
    assert found is not None
    return found


def test_a_penalty_that_outweighs_the_classes_is_told_with_its_line() -> None:
    loss = facts(_penalty)
    assert (
        loss.is_far_above_chance
        and f"test_terms.py:{_line('penalty')}" in describe(loss)
        and "of the loss" in describe(loss)
    )
    (found,) = unequal_loss_terms.function(loss=loss, setup=SetupFacts())
    assert found.severity == Severity.NOTE and found.where is not None and found.where.line == _line("penalty")


@pytest.mark.parametrize(
    ("combine", "told", "far"),
    [
        (lambda loss, hidden: loss * 50 + 20, "times 50; a constant adds 20", True),
        (lambda loss, hidden: (loss + 20) / 4 * 2, "times 0.5; a constant adds 10", True),
        (lambda loss, hidden: loss - 0.01 * hidden.mean(), "", False),
        (lambda loss, hidden: loss / 4, "", False),
        (lambda loss, hidden: sum([loss, 0.1 * (hidden**2).mean()]), "", False),
        (lambda loss, hidden: torch.stack([loss, 100 * hidden.pow(2).sum()]).sum(), "", True),
    ],
    ids=["factor", "shifted-first", "small", "accumulated", "list", "stacked"],
)
def test_factors_and_constants_are_told_and_small_terms_are_not(combine, told: str, far: bool) -> None:
    loss = facts(combine)
    assert loss.is_far_above_chance == far
    assert told in describe(loss) and ("alone" in describe(loss)) == far
    assert not list(unequal_loss_terms.function(loss=loss, setup=SetupFacts()))
    assert not loss.terms or sum(one.value for one in loss.terms) == pytest.approx(loss.value, rel=1e-3)


def _in_place(loss, hidden):
    loss += 1e3 * hidden.pow(2).sum()  # in place
    return loss


def test_what_is_added_in_place_is_a_term_of_its_own() -> None:
    loss = facts(_in_place)
    assert [one.function for one in loss.terms] == ["cross_entropy", ""]
    assert loss.terms[0].value == pytest.approx(loss.call.value)
    (found,) = unequal_loss_terms.function(loss=loss, setup=SetupFacts())
    assert found.where is not None and found.where.line == _line("in place")


@pytest.mark.parametrize("times", [6, 200])
def test_a_penalty_that_is_added_for_each_tensor_is_one_term(times: int) -> None:
    def combine(loss, hidden):
        for _ in range(times):
            loss += 100 * hidden.pow(2).sum()
        return loss

    loss = facts(combine)
    call, penalty = loss.terms
    assert call.function and not penalty.function
    assert call.value + penalty.value == pytest.approx(loss.value, rel=1e-3) and call.value < 3


@pytest.mark.parametrize(
    ("combine", "values"),
    [
        (lambda ce: torch.tensor(5.0) - ce, (-1.0, 5.0)),
        (lambda ce: 5.0 - ce, (-1.0, 5.0)),
        (lambda ce: torch.rsub(ce, torch.tensor(5.0)), (-1.0, 5.0)),
        (lambda ce: ce - 5.0, (1.0, -5.0)),
        (lambda ce: torch.add(ce, ce, alpha=100), (101.0,)),
        (lambda ce: torch.sub(ce, ce.exp(), alpha=2), (1.0, None)),
        (lambda ce: (ce + ce.exp()).float(), (1.0, None)),
    ],
    ids=["constant-minus", "number-minus", "rsub", "minus", "alpha", "alpha-minus", "same"],
)
def test_signs_and_multiples_of_sums(combine, values) -> None:
    loss = facts(lambda ce, hidden: combine(ce))
    of = {one.function or one.is_constant: one for one in loss.terms}
    assert of["cross_entropy"].factor == pytest.approx(values[0])
    assert sum(one.value for one in loss.terms) == pytest.approx(loss.value)
    if len(values) > 1 and values[1]:
        assert of[True].value == pytest.approx(values[1])


def test_several_heads_at_chance_are_not_far_above_it() -> None:
    def summed(heads, weight, error=1.0):
        def combine(loss, hidden):
            labels = torch.arange(8) % 5
            return sum([weight * F.cross_entropy(error * hidden, labels) for _ in range(heads)], 0 * loss)

        return combine

    assert not facts(summed(4, 1.0)).is_far_above_chance and not facts(summed(2, 3.0)).is_far_above_chance
    assert facts(summed(4, 1.0, 100.0)).is_far_above_chance
    assert facts(lambda loss, hidden: loss * 4).is_far_above_chance  # one head: a factor raises it


def test_what_divides_by_the_loss_is_no_multiple_of_it() -> None:
    (one,) = facts(lambda ce, hidden: torch.div(torch.tensor(5.0), ce)).terms
    assert not one.function and not one.is_constant


def test_a_complex_number_in_the_loss_does_not_stop_backward() -> None:
    own_errors()
    loss = facts(lambda ce, hidden: torch.complex(ce, ce).to(torch.float32))
    assert loss.value == pytest.approx(loss.call.value) and not own_errors()


def test_a_fault_of_ours_does_not_stop_backward(monkeypatch) -> None:
    monkeypatch.setattr(TermWatch, "terms_of", lambda *_: 1 / 0)
    assert facts(lambda ce, hidden: ce).value
