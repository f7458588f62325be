"""The walk itself, on an adapter made of nothing: order, repairs, blocking, budget, interruption."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from recorded import BROKEN, PAD, SLOWER, Pipeline, status_of, walked
from trainwright.adapters.base import Run, Train
from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix
from trainwright.core.repair import Repair
from trainwright.core.report import Status
from trainwright.core.rule import RuleError, rule
from trainwright.core.stage import Stage
from trainwright.core.trial import Trial
from trainwright.core.verdict import Shown, Verdict
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.learning import LearningLook
from trainwright.stages.overfit import OverfitFacts
from trainwright.walk.verdict import compared


@rule("TW201", Severity.ERROR)
def ragged(batch: BatchFacts) -> Iterator[Finding]:
    if batch.failure:
        yield Finding(message="rows differ", repair=PAD, fix=Fix(does="pad"))


@rule("TW202", Severity.ERROR)
def ragged_without_repair(batch: BatchFacts) -> Iterator[Finding]:
    if batch.failure:
        yield Finding(message="rows differ, and nothing helps")


@rule("TW105", Severity.ERROR, raises=False)
def shuffled(dataset: DatasetFacts) -> Iterator[Finding]:
    yield Finding(message="shuffled labels")


@rule("TW106", Severity.WARNING, raises=False)
def repeated(dataset: DatasetFacts) -> Iterator[Finding]:
    yield Finding(message="rows stand twice")


@rule("TW605", Severity.ERROR)
def too_fast(overfit: OverfitFacts):
    if not overfit.learnt:
        outcome = yield Trial(change=SLOWER)
        if outcome.clearly_better:
            yield Finding(message="too fast", proof=outcome, repair=SLOWER, fix=Fix(does="slower"))


@rule("TW801", Severity.ERROR, residual=True)
def unexplained(overfit: OverfitFacts) -> Iterator[Finding]:
    if not overfit.learnt:
        yield Finding(message="not learned")


@rule("TW304", Severity.ERROR)
def broken_rule(forward: ForwardFacts) -> Iterator[Finding]:
    raise ZeroDivisionError("a bug of ours")
    yield


def test_every_stage_is_walked_in_order() -> None:
    pipeline = Pipeline()
    report = walked(pipeline)
    assert pipeline.calls[:6] == ["setup", "dataset", "batch", "forward", "optimizer", "evaluation"]
    assert {s for s in status_of(report).items() if s[1] != "passed"} == {("overfit", "not shown")}  # its loss rises
    assert len(report.stages) == 10


@pytest.mark.parametrize(("in_loop", "why"), [(False, "there is no evaluation set"), (True, "no evaluation was seen")])
def test_a_loop_whose_evaluation_was_not_reached_is_not_said_to_have_none(in_loop: bool, why: str) -> None:
    class Unseen(Pipeline):
        def measure_evaluation(self, batches: int) -> EvaluationFacts:
            return EvaluationFacts(present=False, in_loop=in_loop)

    assert next(s.why for s in walked(Unseen()).stages if s.stage == Stage.EVALUATION).startswith(why)


def test_the_verdict_is_what_was_shown() -> None:
    learns, flat = walked(Pipeline()), walked(Pipeline(learned=False))
    assert learns.verdict is not None and flat.verdict is not None
    assert learns.verdict.shown == Shown.LEARNS
    assert learns.verdict.why == (
        "after 16 of 16 planned updates, 100 evaluation rows have a loss of 1, a constant prediction 2 (50% less, 10.0 "
        "standard errors)"
    )
    slightly = LearningLook(updates=16, loss=7.53, constant=7.6, error=0.004)
    assert "learning counts from 2% less on" in compared(slightly)
    assert "counts" not in compared(replace(slightly, loss=7.0))
    assert flat.verdict.shown == Shown.NOT_SHOWN
    assert status_of(flat)["baseline"] == "not shown"
    assert walked(Pipeline(ragged=True), ragged).verdict == Verdict(
        shown=Shown.BROKEN, why="ragged; fixed in memory to walk on"
    )
    assert walked(Pipeline(ragged=True), ragged, repair=False).verdict == Verdict(shown=Shown.BROKEN, why="ragged")
    warned = walked(Pipeline(), repeated)
    assert warned.verdict is not None
    assert warned.verdict.shown == Shown.LEARNS


def test_a_stage_that_passed_with_a_warning_says_so() -> None:
    (run,) = (s for s in walked(Pipeline(), repeated).stages if s.stage == Stage.DATASET)
    assert (run.status, run.why) == (Status.PASSED, "with a warning: repeated")


def test_a_repair_is_applied_once_and_the_walk_goes_on_from_the_mended_stage() -> None:
    pipeline = Pipeline(ragged=True)
    report = walked(pipeline, ragged)
    assert pipeline.calls.count("batch") == 2
    assert pipeline.calls.count("dataset") == 1
    assert status_of(report)["batch"] == "repaired"
    assert status_of(report)["baseline"] == "passed"
    (finding,) = report.findings
    assert finding.fix is not None
    assert finding.fix.tried
    assert not finding.fix.verified
    assert finding.proof is not None


def test_a_fault_without_a_repair_blocks_what_needs_its_stage() -> None:
    report = walked(Pipeline(ragged=True), ragged_without_repair)
    status = status_of(report)
    assert status["dataset"] == "passed"
    assert status["batch"] == "failed"
    assert {status[s] for s in ("forward", "loss", "gradients", "optimizer", "evaluation", "overfit", "baseline")} == {
        "blocked"
    }
    assert report.failure is None, "the finding explains the exception"


def test_an_exception_that_no_rule_knows_is_the_report_s_failure() -> None:
    report = walked(Pipeline(ragged=True))
    assert report.failure == BROKEN
    assert report.faulty
    assert report.first_cause is None


def test_an_exception_that_an_earlier_stage_met_as_well_is_explained_with_it() -> None:
    class Early(Pipeline):
        def measure_dataset(self) -> DatasetFacts:
            raise ValueError("rows differ (reading row 0 of the train set)")

    same, other = walked(Early(ragged=True), ragged_without_repair), walked(Early(ragged=True))
    assert [f.name for f in same.findings] == ["ragged-without-repair"] and same.failure is None
    assert other.failure is not None and "reading row 0" in other.failure.message
    assert status_of(same)["setup"] == "not shown", "the model has no parameters yet"


def test_the_first_rule_that_explains_a_failure_is_enough() -> None:
    report = walked(Pipeline(ragged=True), ragged, ragged_without_repair)
    assert [f.name for f in report.findings] == ["ragged"]


def test_a_fault_that_makes_nothing_raise_explains_no_failure() -> None:
    report = walked(Pipeline(ragged=True), shuffled, ragged)
    assert [f.name for f in report.findings] == ["shuffled", "ragged"]
    assert status_of(report)["batch"] == "repaired"


def test_findings_after_a_repair_say_so_and_the_first_cause_is_the_one_before() -> None:
    report = walked(Pipeline(ragged=True), ragged, too_fast)
    assert [(f.name, f.after_repair) for f in report.findings] == [("ragged", ()), ("too-fast", ("ragged",))]
    assert report.first_cause is not None
    assert report.first_cause.name == "ragged"


def test_a_trial_uses_the_same_seeds_on_both_sides() -> None:
    pipeline = Pipeline()
    report = walked(pipeline, too_fast)
    asis = [c for c in pipeline.calls if c.startswith("train as it is seed")]
    changed = [c for c in pipeline.calls if c.startswith(f"train {SLOWER.does}")]
    assert {c[-1] for c in changed} == {"0", "1", "2"} <= {c[-1] for c in asis}
    assert report.findings[0].proof.seeds == 3


def test_the_seed_of_the_walk_moves_all_seeds() -> None:
    pipeline = Pipeline()
    walked(pipeline, too_fast, seed=40)
    assert {c.split()[-1] for c in pipeline.calls if "seed" in c} == {"40", "41", "42"}


def test_a_residual_rule_is_silent_when_another_explains_and_speaks_when_none_does() -> None:
    assert [f.name for f in walked(Pipeline(), too_fast, unexplained).findings] == ["too-fast"]
    assert [f.name for f in walked(Pipeline(), unexplained).findings] == ["unexplained"]


def test_no_repair_stops_at_the_first_fault() -> None:
    pipeline = Pipeline(ragged=True)
    report = walked(pipeline, ragged, repair=False)
    assert not pipeline.applied
    assert "forward" not in pipeline.calls
    assert status_of(report)["batch"] == "failed"


def test_an_ignored_finding_is_neither_reported_nor_mended() -> None:
    report = walked(Pipeline(), too_fast, ignored=lambda f: f.name == "too-fast")
    assert not report.findings


def test_an_error_of_ours_is_kept_apart_and_raises_when_strict() -> None:
    report = walked(Pipeline(), broken_rule, too_fast)
    assert report.internal_errors
    assert "ZeroDivisionError" in report.internal_errors[0]
    assert [f.name for f in report.findings] == ["too-fast"]
    with pytest.raises(ZeroDivisionError):
        walked(Pipeline(), broken_rule, strict=True)


def test_an_interrupted_walk_gives_what_it_has() -> None:
    report = walked(Pipeline(interrupt_at=Stage.OPTIMIZER))
    assert "Interrupted" in report.message
    assert status_of(report)["gradients"] == "passed"
    assert status_of(report)["baseline"] == "skipped"


def test_a_spent_budget_skips_the_rest_and_says_so() -> None:
    report = walked(Pipeline(), budget=1e-9)
    skipped = [s for s in report.stages if s.status == Status.SKIPPED]
    assert skipped
    assert "budget" in skipped[0].why


def test_a_repair_that_raises_leaves_the_finding_standing() -> None:
    class Refusing(Pipeline):
        def apply(self, repair: Repair) -> None:
            raise RuntimeError("cannot be done")

    report = walked(Refusing(ragged=True), ragged)
    assert status_of(report)["batch"] == "failed"
    assert report.findings[0].repair is None
    assert "cannot be done" in report.internal_errors[0]


def test_a_repair_that_does_not_help_is_not_called_tried() -> None:
    class Stubborn(Pipeline):
        def measure_batch(self) -> BatchFacts:
            return replace(super().measure_batch(), failure=BROKEN)

    report = walked(Stubborn(ragged=True), ragged)
    assert status_of(report)["batch"] == "failed"
    assert not report.findings[0].fix.tried


def test_a_rule_with_a_parameter_that_is_no_facts_class_is_refused() -> None:
    with pytest.raises(RuleError, match="parameter 'x'"):

        @rule("TW999", Severity.NOTE)
        def wrong(x: int) -> Iterator[Finding]:
            yield Finding(message="")


class Alike(Pipeline):
    """Rows of nearly one target: their constant prediction loses far less than the model at first."""

    def train(self, request: Train) -> Run:
        falling = [0.5**i for i in range(request.steps)]
        taken = next((i + 1 for i, x in enumerate(falling) if x <= request.enough), request.steps)
        self.calls.append(f"train {taken}")
        return Run(losses=tuple(falling[:taken]), rows=2, seconds=0.01, constant=0.03)


def test_one_batch_is_trained_on_until_less_than_its_constant_prediction_loses_is_left() -> None:
    pipeline = Alike()
    report = walked(pipeline, unexplained)
    assert not report.findings
    taken = [int(c.split()[1]) for c in pipeline.calls if c.startswith("train")][:2]
    assert taken[0] < taken[1] < 30
