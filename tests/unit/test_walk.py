"""The walk itself, on an adapter made of nothing: order, repairs, blocking, budget, interruption."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from trainwright.adapters.base import Run
from trainwright.core.finding import Failure, Finding, Place, Severity
from trainwright.core.fix import Fix
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.report import Report, Status
from trainwright.core.rule import Rule, RuleError, rule
from trainwright.core.stage import Stage
from trainwright.core.trial import Trial
from trainwright.seams.failures.repair_log import mended
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts, SplitFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.stages.setup import SetupFacts
from trainwright.walk.drive import pull
from trainwright.walk.walk import Walk

BROKEN = Failure(type="ValueError", message="rows differ", where=Place("train.py", 7))
PAD = Repair("pad the rows", Seam.TRAINER, lambda call: call)
SLOWER = Repair("learning rate x 0.1", Seam.OPTIMIZER, lambda call: call)


class Pipeline:
    """An adapter whose stages pass, or fail until a repair is in force."""

    framework = "none"

    def __init__(self, *, ragged: bool = False, interrupt_at: Stage | None = None) -> None:
        self.ragged = ragged
        self.interrupt_at = interrupt_at
        self.applied: list[str] = []
        self.calls: list[str] = []

    def _at(self, stage: Stage) -> None:
        self.calls.append(stage.label)
        if stage == self.interrupt_at:
            raise KeyboardInterrupt

    def measure_setup(self) -> SetupFacts:
        self._at(Stage.SETUP)
        return SetupFacts(model_class="Net")

    def measure_dataset(self) -> DatasetFacts:
        self._at(Stage.DATASET)
        return DatasetFacts(train=SplitFacts(name="train", rows=10))

    def measure_batch(self) -> BatchFacts:
        self._at(Stage.BATCH)
        return BatchFacts(failure=BROKEN if self.ragged and PAD.does not in self.applied else None, rows=2)

    def measure_step(self) -> tuple[ForwardFacts, LossFacts, GradientFacts]:
        self._at(Stage.FORWARD)
        return ForwardFacts(), LossFacts(value=1.0), GradientFacts()

    def measure_optimizer(self) -> OptimizerFacts:
        self._at(Stage.OPTIMIZER)
        return OptimizerFacts(kind="SGD")

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        self._at(Stage.EVALUATION)
        return EvaluationFacts()

    def train(self, *, steps, batches, seed, changes=(), seconds=30.0, enough=0.0) -> Run:
        self.calls.append(f"train {changes[0].does if changes else 'as it is'} seed {seed}")
        slow = SLOWER.does in self.applied or any(c.does == SLOWER.does for c in changes)
        end = 0.1 if slow else 2.0
        return Run(losses=tuple(1.0 + (end - 1.0) * i / (steps - 1) for i in range(steps)), rows=2, seconds=0.01)

    def apply(self, repair: Repair) -> None:
        mended(repair, Call(seam=repair.seam, given={}))
        self.applied.append(repair.does)

    def put_back(self) -> None:
        self.calls.append("put back")


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


def _walk(pipeline: Pipeline, *rules: Rule, **options) -> Report:
    walk = Walk("train.py", rules=rules, **options)
    pull(walk, pipeline)
    return walk.report()


def _status(report: Report) -> dict[str, str]:
    return {s.stage.label: str(s.status) for s in report.stages}


def test_every_stage_is_walked_in_order() -> None:
    pipeline = Pipeline()
    report = _walk(pipeline)
    assert pipeline.calls[:6] == ["setup", "dataset", "batch", "forward", "optimizer", "evaluation"]
    assert set(_status(report).values()) == {"passed"}
    assert len(report.stages) == 10


def test_a_stage_that_passed_with_a_warning_says_so() -> None:
    (run,) = (s for s in _walk(Pipeline(), repeated).stages if s.stage == Stage.DATASET)
    assert (run.status, run.why) == (Status.PASSED, "with a warning: repeated")


def test_a_repair_is_applied_once_and_the_walk_goes_on_from_the_mended_stage() -> None:
    pipeline = Pipeline(ragged=True)
    report = _walk(pipeline, ragged)
    assert pipeline.calls.count("batch") == 2
    assert pipeline.calls.count("dataset") == 1
    assert _status(report)["batch"] == "repaired"
    assert _status(report)["baseline"] == "passed"
    (finding,) = report.findings
    assert finding.fix is not None
    assert finding.fix.tried
    assert not finding.fix.verified
    assert finding.proof is not None


def test_a_fault_without_a_repair_blocks_what_needs_its_stage() -> None:
    report = _walk(Pipeline(ragged=True), ragged_without_repair)
    status = _status(report)
    assert status["dataset"] == "passed"
    assert status["batch"] == "failed"
    assert {status[s] for s in ("forward", "loss", "gradients", "optimizer", "evaluation", "overfit", "baseline")} == {
        "blocked"
    }
    assert report.failure is None, "the finding explains the exception"


def test_an_exception_that_no_rule_knows_is_the_report_s_failure() -> None:
    report = _walk(Pipeline(ragged=True))
    assert report.failure == BROKEN
    assert report.faulty
    assert report.first_cause is None


def test_the_first_rule_that_explains_a_failure_is_enough() -> None:
    report = _walk(Pipeline(ragged=True), ragged, ragged_without_repair)
    assert [f.name for f in report.findings] == ["ragged"]


def test_a_fault_that_makes_nothing_raise_explains_no_failure() -> None:
    report = _walk(Pipeline(ragged=True), shuffled, ragged)
    assert [f.name for f in report.findings] == ["shuffled", "ragged"]
    assert _status(report)["batch"] == "repaired"


def test_findings_after_a_repair_say_so_and_the_first_cause_is_the_one_before() -> None:
    report = _walk(Pipeline(ragged=True), ragged, too_fast)
    assert [(f.name, f.after_repair) for f in report.findings] == [("ragged", ()), ("too-fast", ("ragged",))]
    assert report.first_cause is not None
    assert report.first_cause.name == "ragged"


def test_a_trial_uses_the_same_seeds_on_both_sides() -> None:
    pipeline = Pipeline()
    report = _walk(pipeline, too_fast)
    asis = [c for c in pipeline.calls if c.startswith("train as it is seed")]
    changed = [c for c in pipeline.calls if c.startswith(f"train {SLOWER.does}")]
    assert {c[-1] for c in changed} == {"0", "1", "2"} <= {c[-1] for c in asis}
    assert report.findings[0].proof.seeds == 3


def test_the_seed_of_the_walk_moves_all_seeds() -> None:
    pipeline = Pipeline()
    _walk(pipeline, too_fast, seed=40)
    assert {c.split()[-1] for c in pipeline.calls if "seed" in c} == {"40", "41", "42"}


def test_a_residual_rule_is_silent_when_another_explains_and_speaks_when_none_does() -> None:
    assert [f.name for f in _walk(Pipeline(), too_fast, unexplained).findings] == ["too-fast"]
    assert [f.name for f in _walk(Pipeline(), unexplained).findings] == ["unexplained"]


def test_no_repair_stops_at_the_first_fault() -> None:
    pipeline = Pipeline(ragged=True)
    report = _walk(pipeline, ragged, repair=False)
    assert not pipeline.applied
    assert "forward" not in pipeline.calls
    assert _status(report)["batch"] == "failed"


def test_an_ignored_finding_is_neither_reported_nor_mended() -> None:
    report = _walk(Pipeline(), too_fast, ignored=lambda f: f.name == "too-fast")
    assert not report.findings


def test_an_error_of_ours_is_kept_apart_and_raises_when_strict() -> None:
    report = _walk(Pipeline(), broken_rule, too_fast)
    assert report.internal_errors
    assert "ZeroDivisionError" in report.internal_errors[0]
    assert [f.name for f in report.findings] == ["too-fast"]
    with pytest.raises(ZeroDivisionError):
        _walk(Pipeline(), broken_rule, strict=True)


def test_an_interrupted_walk_gives_what_it_has() -> None:
    report = _walk(Pipeline(interrupt_at=Stage.OPTIMIZER))
    assert "Interrupted" in report.message
    assert _status(report)["gradients"] == "passed"
    assert _status(report)["baseline"] == "skipped"


def test_a_spent_budget_skips_the_rest_and_says_so() -> None:
    report = _walk(Pipeline(), budget=1e-9)
    skipped = [s for s in report.stages if s.status == Status.SKIPPED]
    assert skipped
    assert "budget" in skipped[0].why


def test_a_repair_that_raises_leaves_the_finding_standing() -> None:
    class Refusing(Pipeline):
        def apply(self, repair: Repair) -> None:
            raise RuntimeError("cannot be done")

    report = _walk(Refusing(ragged=True), ragged)
    assert _status(report)["batch"] == "failed"
    assert report.findings[0].repair is None
    assert "cannot be done" in report.internal_errors[0]


def test_a_repair_that_does_not_help_is_not_called_tried() -> None:
    class Stubborn(Pipeline):
        def measure_batch(self) -> BatchFacts:
            return replace(super().measure_batch(), failure=BROKEN)

    report = _walk(Stubborn(ragged=True), ragged)
    assert _status(report)["batch"] == "failed"
    assert not report.findings[0].fix.tried


def test_a_rule_with_a_parameter_that_is_no_facts_class_is_refused() -> None:
    with pytest.raises(RuleError, match="parameter 'x'"):

        @rule("TW999", Severity.NOTE)
        def wrong(x: int) -> Iterator[Finding]:
            yield Finding(message="")


class Alike(Pipeline):
    """Rows of nearly one target: their constant prediction loses far less than the model at first."""

    def train(self, *, steps, batches, seed, changes=(), seconds=30.0, enough=0.0) -> Run:
        falling = [0.5**i for i in range(steps)]
        taken = next((i + 1 for i, x in enumerate(falling) if x <= enough), steps)
        self.calls.append(f"train {taken}")
        return Run(losses=tuple(falling[:taken]), rows=2, seconds=0.01, constant=0.03)


def test_one_batch_is_trained_on_until_less_than_its_constant_prediction_loses_is_left() -> None:
    pipeline = Alike()
    report = _walk(pipeline, unexplained)
    assert not report.findings
    taken = [int(c.split()[1]) for c in pipeline.calls if c.startswith("train")][:2]
    assert taken[0] < taken[1] < 30
