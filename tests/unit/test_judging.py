"""The rules are asked in the pipeline's order, and what follows from a fault is not said beside it."""

from collections.abc import Iterator

import pytest

from trainwright.core import Failure, Finding, Outcome, Repair, Rule, Seam, Severity, Trial, rule
from trainwright.core.rule import RuleError
from trainwright.look.asking import judge_facts
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, OverfitFacts, SetupFacts, SplitFacts

SLOWER = Repair("learning rate x 0.1", Seam.OPTIMIZER, lambda call: call)
BETTER = Outcome(changed=SLOWER.does, before=(2.0, 2.1, 2.2), after=(0.1, 0.1, 0.2), steps=16)
ALL = {
    SetupFacts: SetupFacts(),
    DatasetFacts: DatasetFacts(train=SplitFacts(name="train", rows=10)),
    BatchFacts: BatchFacts(rows=2),
    ForwardFacts: ForwardFacts(),
    OverfitFacts: OverfitFacts(losses=(1.0,) * 30, rows=2, learnt=False, falling=False),
}


@rule("TW106", Severity.WARNING, raises=False)
def repeated(dataset: DatasetFacts) -> Iterator[Finding]:
    yield Finding(message="rows stand twice")


@rule("TW107", Severity.NOTE)
def noted(dataset: DatasetFacts) -> Iterator[Finding]:
    yield Finding(message="few rows")


@rule("TW201", Severity.ERROR)
def ragged(batch: BatchFacts) -> Iterator[Finding]:
    yield Finding(message="rows differ")


@rule("TW304", Severity.ERROR)
def broken_rule(forward: ForwardFacts) -> Iterator[Finding]:
    raise ZeroDivisionError("a bug of ours")
    yield


@rule("TW605", Severity.ERROR)
def too_fast(overfit: OverfitFacts):
    outcome = yield Trial(change=SLOWER)
    if outcome.clearly_better:
        yield Finding(message="too fast", proof=outcome, repair=SLOWER)


@rule("TW801", Severity.ERROR, residual=True)
def unexplained(overfit: OverfitFacts) -> Iterator[Finding]:
    yield Finding(message="not learned")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch):
    def judged(*rules: Rule, is_end: bool = False, answer: Outcome = BETTER, **facts):
        monkeypatch.setattr("trainwright.look.asking.load_fact_rules", lambda: rules)
        found: list[Finding] = []
        failed = judge_facts(
            {**ALL, **{type(f): f for f in facts.values()}}, lambda *asked: answer, found, is_end=is_end
        )
        return [f.name for f in found], failed

    return judged


def test_behind_the_first_fault_nothing_is_said_and_behind_a_note_everything(judge) -> None:
    assert judge(ragged, repeated) == (["repeated"], [])
    assert judge(ragged, noted) == (["noted", "ragged"], [])


def test_a_rule_of_what_is_left_over_speaks_when_no_other_does(judge) -> None:
    assert judge(unexplained, too_fast)[0] == ["too-fast"]
    worse = Outcome(changed="", before=(1.0, 1.0, 1.0), after=(1.0, 1.0, 1.0))
    assert judge(unexplained, too_fast, answer=worse)[0] == ["unexplained"]


def test_an_error_of_ours_is_kept_apart(judge) -> None:
    found, failed = judge(broken_rule, too_fast)
    assert found == ["too-fast"] and failed == ["rule TW304 broken-rule: ZeroDivisionError: a bug of ours"]


def test_of_what_raised_only_an_error_that_can_raise_is_the_cause(judge) -> None:
    failure = Failure(type="ValueError", message="rows differ", where=None)
    found, _ = judge(repeated, noted, ragged, is_end=True, setup=SetupFacts(failure=failure))
    assert found == ["ragged"]


def test_a_rule_with_a_parameter_that_is_no_facts_class_is_refused() -> None:
    with pytest.raises(RuleError, match="parameter 'x'"):

        @rule("TW999", Severity.NOTE)
        def wrong(x: int) -> Iterator[Finding]:
            yield Finding(message="")
