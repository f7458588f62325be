"""What the review of a rehearsal adds to the reports of the walk."""

from dataclasses import replace

import pytest

from records import empty, parameters, regressor
from trainwright.core import Failure, Finding, Place, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import Report, exit_status
from trainwright.core.sample import Sample
from trainwright.core.sheet import PIECES
from trainwright.core.trial import Outcome
from trainwright.options import Options
from trainwright.rehearsal.record import Record, Training
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsing import Rehearsing, When, add_review
from trainwright.walk.stage_runs import UNSEEN_EVALUATION

WALKED = Report(
    script="train.py",
    stages=(StageRun(stage=Stage.FORWARD, status=Status.PASSED),),
    verdict=Verdict(shown=Shown.NOT_SHOWN, why="too few updates"),
)
UNREACHED = Report(script="train.py", message="no training was reached")
AT = Place("train.py", 3)


def found(name: str, code: str, severity: Severity) -> Finding:
    return Finding(message="it is so", code=code, name=name, severity=severity, where=AT)


def with_review(record: Record, *reports: Report, ignore: tuple[str, ...] = ()) -> list[Report]:
    return add_review(reports, record, Options(ignore=ignore))


def test_the_run_says_whether_it_learns() -> None:
    (report,) = with_review(regressor(), WALKED)
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS
    assert report.sheet is not None and report.stages[-1].stage == Stage.REHEARSAL
    assert report.stages[-1].status == Status.PASSED and exit_status([report]) == 0


def test_a_training_that_nobody_walks_is_judged() -> None:
    assert exit_status([UNREACHED]) == 2
    (report,) = with_review(regressor(), UNREACHED)
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS and exit_status([report]) == 0


def test_a_run_without_an_update_leaves_the_walk_as_it_is() -> None:
    (report,) = with_review(Record(), WALKED)
    assert report.verdict == WALKED.verdict and report.stages[-1].status == Status.SKIPPED


def test_rows_of_the_run_come_before_those_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Sample(rows_of="training", output="", why=("at random",), row=1, update=0, inputs=(), label="1", answer="")
    walked = replace(WALKED, samples=(row,))
    for record in (Record(), regressor()):  # no row was seen in these
        (report,) = with_review(record, walked)
        assert report.samples == (row,)
    monkeypatch.setattr("trainwright.review._sheet.samples", lambda record, findings: (row,))
    (report,) = with_review(regressor(), walked)
    assert report.samples == () and report.sheet is not None and report.sheet.samples == (row,)


def test_a_note_that_explains_why_nothing_is_learned_is_the_first_cause() -> None:
    notes = (found("imbalanced-classes", "TW109", Severity.NOTE), found("mostly-padding", "TW208", Severity.NOTE))
    (report,) = with_review(regressor(), replace(WALKED, findings=notes))
    assert report.first_cause is None and report.findings == notes  # it learns with them
    (report,) = with_review(regressor(0.9, 0.0), replace(WALKED, findings=notes))
    first = report.first_cause
    assert first is not None and first.name == "imbalanced-classes" and "no measure sees a gain" in str(first.proof)
    assert [f.name for f in report.findings if f.severity == Severity.NOTE] == ["mostly-padding"]
    outcome = next(f for f in report.findings if f.name == "held-out-at-constant")
    assert outcome.fix is not None and "TW109 imbalanced-classes" in outcome.fix.does


def test_an_error_that_the_walk_has_proven_stands() -> None:
    broken = Verdict(shown=Shown.BROKEN, why="wrong-head")
    proven = replace(WALKED, findings=(found("wrong-head", "TW401", Severity.ERROR),), verdict=broken)
    (report,) = with_review(regressor(), proven)
    assert report.verdict == broken and exit_status([report]) == 1


def test_what_thirty_steps_say_of_learning_is_said_only_where_the_run_agrees() -> None:
    shortly = replace(WALKED, findings=(found("unlearnable-batch", "TW801", Severity.WARNING),))
    (report,) = with_review(regressor(), shortly)
    assert report.findings == ()
    (report,) = with_review(empty(), shortly)
    assert [f.name for f in report.findings] == ["unlearnable-batch"]


def test_a_whole_run_behind_the_constant_answer_outweighs_a_short_one() -> None:
    learns = replace(WALKED, verdict=Verdict(shown=Shown.LEARNS, why="after 128 updates"))
    record = regressor()
    record.answers = [
        one if one.trains or one.values is None else replace(one, values=one.values + 9) for one in record.answers
    ]
    (report,) = with_review(record, learns)
    assert report.verdict is not None and report.verdict.shown == Shown.NOT_SHOWN
    record.trainings[-1] = replace(record.trainings[-1], ends=None, is_cut=True, planned=9999)
    (report,) = with_review(record, learns)
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS
    assert report.verdict.look_at == ("200 held-out rows are answered like a constant",)


def test_an_exception_at_the_end_of_the_script_is_its_failure() -> None:
    record = regressor()
    record.ended.failure = Failure(type="FileNotFoundError", message="no such folder", where=AT)
    (report,) = with_review(record, WALKED)
    assert report.failure == record.ended.failure and report.stages[-1].status == Status.FAILED
    assert report.verdict is not None and report.verdict.shown == Shown.BROKEN and exit_status([report]) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("You should supply an encoding or a list of encodings that includes input_ids, but you gave ['label']", "the raw one, not the tokenized one"),
        ("Classification metrics can't handle a mix of multiclass and continuous-multioutput targets", "Take the argmax"),
        ("nobody knows this", "mend the line that raises"),
    ],
    ids=["untokenized", "scores", "unknown"],
)  # fmt: skip
def test_what_is_known_of_an_exception_is_its_remedy(message: str, told: str) -> None:
    record = regressor()
    record.ended.failure = Failure(type="ValueError", message=message, where=AT)
    (report,) = with_review(record, WALKED)
    first = report.first_cause
    assert first is not None and first.name == "script-stopped" and first.fix is not None and told in first.fix.does


def test_an_error_that_would_have_ended_the_run_is_refuted_by_it() -> None:
    broken = Verdict(shown=Shown.BROKEN, why="label-out-of-range")
    findings = (found("label-out-of-range", "TW401", Severity.ERROR),)
    stages = (StageRun(stage=Stage.LOSS, status=Status.REPAIRED, why="label-out-of-range"),)
    walked = replace(WALKED, findings=findings, stages=stages, verdict=broken)
    (report,) = with_review(regressor(), walked)
    assert report.findings == () and report.stages[0].status == Status.PASSED
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS
    record = regressor()
    record.ended.failure = Failure(type="IndexError", message="Target 3 is out of bounds.", where=AT)
    (report,) = with_review(record, walked)
    assert report.verdict == broken and [f.name for f in report.findings] == ["label-out-of-range"]


@pytest.mark.parametrize("has_gradients", [True, False])
def test_a_step_without_a_gradient_is_refuted_by_weights_that_get_some_and_move(has_gradients: bool) -> None:
    broken = Verdict(shown=Shown.BROKEN, why="no-gradient")
    stages = (StageRun(stage=Stage.GRADIENTS, status=Status.FAILED, why="no-gradient"),)
    walked = replace(WALKED, findings=(found("no-gradient", "TW503", Severity.ERROR),), stages=stages, verdict=broken)
    record = regressor()
    record.parameters = parameters(had_gradient=has_gradients)
    (report,) = with_review(record, walked)
    assert [f.name for f in report.findings if f.name == "no-gradient"] == ([] if has_gradients else ["no-gradient"])
    assert report.stages[0].status == (Status.SKIPPED if has_gradients else Status.FAILED)
    assert (exit_status([report]) == 0) == has_gradients


def test_an_exception_that_the_walk_has_explained_is_not_told_again() -> None:
    record = Record()
    record.ended.failure = Failure(type="TypeError", message="unexpected keyword", where=AT)
    proven = replace(WALKED, findings=(found("renamed-argument", "TW001", Severity.ERROR),))
    (report,) = with_review(record, proven)
    assert [f.name for f in report.findings] == ["renamed-argument"] and report.failure is None
    assert report.stages[-1].status == Status.FAILED


@pytest.mark.parametrize("what", ["hindrance", "own_error"])
def test_what_a_rehearsal_lacks_is_no_fault_of_the_script(what: str) -> None:
    record = regressor()
    setattr(record.ended, what, "it asks for typed input")
    (report,) = with_review(record, WALKED)
    assert report.failure is None and report.findings == () and report.stages[-1].status == Status.SKIPPED
    assert exit_status([report]) == (2 if what == "own_error" else 0)


def test_a_finding_that_is_ignored_is_left_out() -> None:
    record = regressor()
    record.ended.failure = Failure(type="KeyError", message="'x'", where=AT)
    (report,) = with_review(record, WALKED)
    (name,) = {f.name for f in report.findings}
    (report,) = with_review(record, WALKED, ignore=(name,))
    assert report.findings == ()


def test_each_training_has_its_verdict() -> None:
    record = regressor()
    record.trainings = [
        Training(number=1, kind="loop", begins=0, ends=record.updates // 2),
        Training(number=2, kind="loop", begins=record.updates // 2, ends=record.updates),
    ]
    reports = with_review(record, replace(WALKED, training=1), replace(WALKED, training=2))
    assert [r.verdict is not None for r in reports] == [True, True]
    assert [len([s for s in r.stages if s.stage == Stage.REHEARSAL]) for r in reports] == [1, 0]


def test_an_exception_of_the_walk_that_the_whole_run_does_not_raise_is_not_the_scripts() -> None:
    failure = Failure(type="ValueError", message="the walk called it otherwise", where=AT)
    stages = (StageRun(stage=Stage.EVALUATION, status=Status.FAILED, why=str(failure)),)
    broken = Verdict(shown=Shown.BROKEN, why="it stops with ValueError")
    walked = replace(WALKED, stages=(*WALKED.stages, *stages), failure=failure, verdict=broken)
    (report,) = with_review(regressor(), walked)
    assert report.failure is None and report.stages[1].status == Status.SKIPPED and exit_status([report]) == 0
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS

    raised = replace(found("crashing-metrics", "TW702", Severity.ERROR), is_of_exception=True)
    failed = replace(stages[0], why="crashing-metrics")
    walked = replace(WALKED, stages=(*WALKED.stages, failed), findings=(raised,), verdict=broken)
    (report,) = with_review(regressor(), walked)
    assert report.findings == () and exit_status([report]) == 0

    cut = regressor()
    cut.trainings[0].is_cut = True
    (report,) = with_review(cut, walked)
    assert report.findings == (raised,) and report.verdict == broken and exit_status([report]) == 1


def test_a_lower_loss_alone_is_no_warning_where_losses_have_no_labels() -> None:
    tried = Outcome(changed="standardise input", before=(12.3, 12.2, 12.1), after=(10.1, 9.9, 9.8), steps=12)
    found_by_loss = replace(found("unscaled-inputs", "TW106", Severity.WARNING), proof=tried)
    judged_by_constant = replace(found_by_loss, proof=replace(tried, constant=(11.0, 11.0, 11.0)))
    walked = replace(WALKED, findings=(found_by_loss, judged_by_constant))
    (report,) = with_review(Record(updates=60), walked)
    assert report.verdict is not None and report.verdict.shown == Shown.CANNOT_BE_JUDGED
    assert [f.severity for f in report.findings] == [Severity.NOTE, Severity.WARNING]
    (report,) = with_review(regressor(), walked)
    assert {f.severity for f in report.findings} == {Severity.WARNING}


class Instant:
    """A rehearsal whose script ends at once."""

    is_out_of_memory = False

    def __init__(self) -> None:
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def note_walked(self, number: int) -> None:
        """Makes no trials."""

    def wait(self, say: object, *, until: object) -> Record:
        return Record(updates=self.starts)


@pytest.mark.parametrize(("when", "before"), [(When.BEFORE, 1), (When.BESIDE, 1), (When.AFTER, 0)])
def test_a_rehearsal_runs_once_whenever_it_does(when: When, before: int) -> None:
    instant = Instant()
    one = Rehearsing(instant, 1.0, when, print)  # type: ignore[arg-type]
    assert instant.starts == before
    assert one.finish([WALKED], print).updates == 1


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (RuntimeError("CUDA error: device-side assert triggered"), 0),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), 0),
        (RuntimeError("shapes differ"), 1),
    ],
)
def test_what_a_lost_or_full_device_refuses_a_watcher_is_no_error_of_ours(error: RuntimeError, counted: int) -> None:
    def read() -> None:
        raise error

    recorder = Recorder()
    recorder.guard(read)
    assert len(recorder.finish().watcher_errors) == counted


def test_a_name_that_the_run_has_come_to_is_said_once() -> None:
    walked = replace(WALKED, findings=(found("undefined-name", "TW013", Severity.WARNING),))
    record = replace_end(regressor(), Failure(type="NameError", message="name 'rows' is not defined", where=AT))
    (report,) = with_review(record, walked)
    assert [f.name for f in report.findings if f.where == AT] == ["script-stopped"]
    (report,) = with_review(regressor(), walked)
    assert [f.name for f in report.findings if f.where == AT] == ["undefined-name"]


def replace_end(record: Record, failure: Failure) -> Record:
    record.ended.failure = failure
    return record


def test_an_evaluation_that_only_the_run_made_is_named_among_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = StageRun(stage=Stage.EVALUATION, status=Status.SKIPPED, why=UNSEEN_EVALUATION)
    piece = PIECES.row(what="evaluated", times=5, first_update=0, last_update=80, how="", where=Place("train.py", 95))
    monkeypatch.setattr("trainwright.review._sheet.pieces", lambda record: (piece,))
    (report,) = with_review(regressor(), replace(WALKED, stages=(skipped,)))
    assert report.stages[0].why == "the rehearsal evaluated 5 times at train.py:95"
    monkeypatch.setattr("trainwright.review._sheet.pieces", lambda record: ())
    (report,) = with_review(regressor(), replace(WALKED, stages=(skipped,)))
    assert report.stages[0] == skipped
