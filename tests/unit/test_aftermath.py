"""What a repair is worth: it is called tried only if nothing behind it is worse, and faults are judged before they are mended."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from recorded import SLOWER, Pipeline, status_of, walked
from trainwright.adapters.base import Run, Train
from trainwright.core.finding import Failure, Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.repair import Repair, Seam
from trainwright.core.rule import rule
from trainwright.core.trial import Trial
from trainwright.stages.dataset import DatasetFacts, SplitFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.walk.aftermath import same_failure

HALVE = Repair("halve the rows", Seam.TRAINER, lambda call: call)


class Halved(Pipeline):
    """A pipeline that a repair changes: ten rows become five."""

    @property
    def halved(self) -> bool:
        return HALVE.does in self.applied

    def measure_dataset(self) -> DatasetFacts:
        super().measure_dataset()
        return DatasetFacts(train=SplitFacts(name="train", rows=5 if self.halved else 10))


@rule("TW105", Severity.ERROR)
def too_many(dataset: DatasetFacts) -> Iterator[Finding]:
    if dataset.train.rows > 5:
        yield Finding(message=f"{dataset.train.rows} rows", repair=HALVE, fix=Fix(does="halve them"))


@rule("TW107", Severity.WARNING)
def too_many_seen_late(dataset: DatasetFacts, overfit: OverfitFacts) -> Iterator[Finding]:
    if dataset.train.rows > 5:
        yield Finding(message=f"{dataset.train.rows} rows", repair=HALVE, fix=Fix(does="halve them"))


def _tried(pipeline: Pipeline, *rules) -> bool:
    found = walked(pipeline, *rules).findings[0]
    assert found.fix is not None
    return found.fix.tried


def test_a_repair_is_tried_if_the_walk_goes_on_as_before() -> None:
    assert _tried(Halved(), too_many)
    assert _tried(Halved(), too_many_seen_late)


def test_a_repair_that_makes_a_later_stage_fail_is_not_tried() -> None:
    class Raising(Halved):
        def measure_optimizer(self) -> OptimizerFacts:
            if self.halved:
                raise ValueError("no rows")
            return super().measure_optimizer()

    report = walked(Raising(), too_many_seen_late)
    assert status_of(report)["optimizer"] == "failed"
    assert [f.fix.tried for f in report.findings if f.fix] == [False]
    assert _tried(Raising(), too_many), "without the repair that stage was never walked: nothing is known to be worse"


@rule("TW405", Severity.ERROR)
def odd_loss(dataset: DatasetFacts, loss: LossFacts) -> Iterator[Finding]:
    if dataset.train.rows == 5:
        yield Finding(message="five rows are odd", proof=Proof("5 / 2"))


EVEN = Repair("even them out", Seam.LOSS, lambda call: call.replace())


class Evened(Halved):
    def measure_step(self) -> tuple[ForwardFacts, LossFacts, GradientFacts]:
        forward, loss, gradients = super().measure_step()
        return forward, replace(loss, value=2.0 if EVEN.does in self.applied else 1.0), gradients


@rule("TW405", Severity.ERROR)
def odd_loss_with_repair(dataset: DatasetFacts, loss: LossFacts) -> Iterator[Finding]:
    if dataset.train.rows == 5 and loss.value == 1.0:
        yield Finding(message="five rows are odd", repair=EVEN, fix=Fix(does="even them out"))


def test_a_repair_that_brings_a_new_error_is_not_tried_unless_that_error_is_repaired() -> None:
    assert not _tried(Halved(), too_many_seen_late, odd_loss)
    report = walked(Evened(), too_many_seen_late, odd_loss_with_repair)
    assert [(f.name, f.fix.tried) for f in report.findings if f.fix] == [
        ("too-many-seen-late", True),
        ("odd-loss-with-repair", True),
    ]


def test_an_error_that_no_rule_had_looked_for_is_not_held_against_a_repair() -> None:
    assert _tried(Halved(), too_many, odd_loss)


def _ending(without: float, with_it: float) -> Pipeline:
    """A pipeline whose loss on one batch ends at these numbers, without and with the repair."""

    class Ending(Halved):
        def train(self, request: Train) -> Run:
            end = with_it if self.halved else without
            losses = tuple(1.0 + (end - 1.0) * min(1.0, 2 * i / request.steps) for i in range(request.steps))
            return Run(losses=losses, rows=2, seconds=0.01, constant=0.9)

    return Ending()


@pytest.mark.parametrize(
    ("without", "with_it", "tried"), [(0.1, 0.1, True), (0.1, 0.95, False), (0.6, 0.85, False), (0.85, 0.6, True)]
)
def test_a_repair_with_which_a_batch_is_learned_less_is_not_tried(without: float, with_it: float, tried: bool) -> None:
    assert _tried(_ending(without, with_it), too_many_seen_late) == tried


@pytest.mark.parametrize(("value", "expected", "tried"), [(1.2, 1.0, True), (9.0, 1.0, False), (9.0, 9.0, True)])
def test_a_first_loss_is_compared_with_an_uninformed_model_s(value: float, expected: float, tried: bool) -> None:
    class Measured(Halved):
        def measure_step(self) -> tuple[ForwardFacts, LossFacts, GradientFacts]:
            forward, loss, gradients = super().measure_step()
            return forward, replace(loss, value=value if self.halved else 1.0, expected=expected), gradients

    class Before(Measured):
        def measure_step(self) -> tuple[ForwardFacts, LossFacts, GradientFacts]:
            forward, loss, gradients = super().measure_step()
            return forward, loss if self.halved else replace(loss, expected=1.0), gradients

    assert _tried(Before(), too_many_seen_late) == tried


def test_a_fault_that_is_found_again_with_numbers_like_before_was_not_repaired() -> None:
    class Stubborn(Halved):
        def measure_dataset(self) -> DatasetFacts:
            return DatasetFacts(train=SplitFacts(name="train", rows=10_001 if self.halved else 10_000))

    @rule("TW105", Severity.ERROR)
    def counted(dataset: DatasetFacts) -> Iterator[Finding]:
        rows = dataset.train.rows
        yield Finding(message=f"{rows:,} rows", measured={"rows": rows}, repair=HALVE, fix=Fix(does="halve them"))

    report = walked(Stubborn(), counted)
    (found,) = report.findings
    assert found.measured == {"rows": 10_000}
    assert found.fix is not None
    assert not found.fix.tried
    assert status_of(report)["dataset"] == "failed"


# Judged first


def _counting(code: str, *, above: int, repair: Repair | None = None):
    @rule(code, Severity.WARNING)
    def counted(dataset: DatasetFacts) -> Iterator[Finding]:
        if dataset.train.rows > above:
            yield Finding(message=f"{dataset.train.rows} rows", repair=repair, fix=Fix(does="fewer"))

    return replace(counted, name=f"more-than-{above}")


def test_all_rules_judge_the_pipeline_before_it_is_repaired() -> None:
    report = walked(Halved(), _counting("TW105", above=5, repair=HALVE), _counting("TW106", above=2))
    assert [(f.name, f.message, f.after_repair) for f in report.findings] == [
        ("more-than-5", "10 rows", ()),
        ("more-than-2", "10 rows", ()),
    ]


def test_what_is_gone_with_another_fault_s_repair_was_its_consequence() -> None:
    report = walked(Halved(), _counting("TW105", above=5, repair=HALVE), _counting("TW106", above=7))
    assert [f.name for f in report.findings] == ["more-than-5"]


def test_a_fault_of_which_an_earlier_one_is_the_cause_does_not_overtake_it() -> None:
    """It is found first, and it is graver; with the earlier fault repaired, it is gone."""

    @rule("TW405", Severity.ERROR)
    def grave(dataset: DatasetFacts, loss: LossFacts) -> Iterator[Finding]:
        if dataset.train.rows > 5:
            yield Finding(message="grave", proof=Proof("10 rows"))

    report = walked(Halved(), grave, too_many_seen_late)
    assert [f.name for f in report.findings] == ["too-many-seen-late"]
    assert report.first_cause is not None
    assert report.first_cause.name == "too-many-seen-late"


def test_a_fault_that_stays_is_kept_as_it_was_first_found() -> None:
    report = walked(Halved(), _counting("TW106", above=2), too_many_seen_late)
    assert [(f.name, f.message) for f in report.findings] == [
        ("more-than-2", "10 rows"),
        ("too-many-seen-late", "10 rows"),
    ]


@rule("TW109", Severity.WARNING)
def by_experiment(dataset: DatasetFacts):
    outcome = yield Trial(change=SLOWER)
    if outcome.clearly_better:
        yield Finding(message="slower is better", proof=outcome)


def test_no_experiment_is_made_on_a_pipeline_that_is_about_to_be_repaired() -> None:
    pipeline = Halved()
    report = walked(pipeline, too_many, by_experiment)
    assert [(f.name, f.after_repair) for f in report.findings] == [("too-many", ()), ("by-experiment", ("too-many",))]
    assert sum(c.startswith(f"train {SLOWER.does}") for c in pipeline.calls) == 3
    assert (
        pipeline.calls.index(f"train {SLOWER.does} seed 0")
        > [i for i, c in enumerate(pipeline.calls) if c == "dataset"][1]
    )


def test_a_repair_that_cannot_be_made_does_not_keep_experiments_from_being_made() -> None:
    class Refusing(Halved):
        def apply(self, repair: Repair) -> None:
            raise RuntimeError("cannot be done")

    report = walked(Refusing(), too_many, by_experiment)
    assert [f.name for f in report.findings] == ["too-many", "by-experiment"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("row 3 of 9", "row 12 of 9: the rest", True),
        ("0", "'labels'", False),  # of a KeyError
        ("5", "list index out of range", False),
        ("5", "5", True),
    ],
)
def test_an_exception_is_known_again_by_its_words(one: str, other: str, same: bool) -> None:
    failures = [Failure(type="KeyError", message=message, where=None) for message in (one, other)]
    assert same_failure(*failures) is same
