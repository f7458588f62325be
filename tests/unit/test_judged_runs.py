"""What the review of a rehearsal adds to the reports of the check."""

from dataclasses import replace
from pathlib import Path

import pytest

from records import empty, parameters, regressor
from trainwright.checking import verify_fixes
from trainwright.core import (
    Failure,
    Finding,
    Fix,
    Outcome,
    Place,
    RenameKeyword,
    Report,
    Severity,
    Shown,
    Stage,
    Status,
    Verdict,
    exit_status,
)
from trainwright.core.sheet import PIECES
from trainwright.judging.looks import IN_RUN, NOT_REACHED, UNSEEN_EVALUATION, with_training
from trainwright.judging.repaired import JudgedRun, Repaired
from trainwright.judging.report import judge_run
from trainwright.look.results import LookResult
from trainwright.options import Options
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Ended
from trainwright.rehearsal.recorder import Recorder
from trainwright.stages import ForwardFacts, LossFacts, OddRowFacts, SetupFacts

AT = Place("train.py", 3)


def found(name: str, code: str, severity: Severity) -> Finding:
    return Finding(message="it is so", code=code, name=name, severity=severity, where=AT)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch):
    """The report of a record in which the rules find something."""

    def judged(
        record: Record,
        *findings: Finding,
        ignore: tuple[str, ...] = (),
        last: Record | None = None,
        names: tuple[str, ...] = (),
    ) -> Report:
        repaired = Repaired([*findings], [], [JudgedRun(last, names)] if last is not None else [])
        monkeypatch.setattr("trainwright.judging.report.judge_repaired", lambda looks, record, run: repaired)
        return judge_run(Report(script="train.py"), record, Options(ignore=ignore))

    return judged


def test_the_run_says_whether_it_learns(judge) -> None:
    report = judge(regressor())
    assert report.verdict is not None and report.verdict.shown == Shown.LEARNS
    assert report.sheet is not None and report.stages[-1].stage == Stage.REHEARSAL
    assert report.stages[-1].status == Status.PASSED and exit_status(report) == 0


def test_a_note_that_explains_why_nothing_is_learned_is_the_first_cause(judge) -> None:
    notes = (found("imbalanced-classes", "TW109", Severity.NOTE), found("mostly-padding", "TW208", Severity.NOTE))
    report = judge(regressor(), *notes)
    assert report.first_cause is None and report.findings == notes  # it learns with them
    report = judge(regressor(0.9, 0.0), *notes)
    first = report.first_cause
    assert first is not None and first.name == "imbalanced-classes" and "no measure sees a gain" in str(first.proof)
    assert [f.name for f in report.findings if f.severity == Severity.NOTE] == ["mostly-padding"]
    outcome = next(f for f in report.findings if f.name == "held-out-at-constant")
    assert outcome.fix is not None and "TW109 imbalanced-classes" in outcome.fix.does


@pytest.mark.parametrize("learns", [True, False])
def test_what_was_not_tried_is_told_where_nothing_shows_that_it_learns(judge, learns: bool) -> None:
    record = regressor() if learns else regressor(0.9, 0.0)
    without = judge(record)
    record.looks = [LookResult(training=1, facts={}, untried="Not tried for lack of time: x.")]
    report = judge(record)
    assert report.message == ("" if learns else "Not tried for lack of time: x.")
    assert (report.verdict, report.findings) == (without.verdict, without.findings)


def test_an_error_that_the_check_has_proven_stands(judge) -> None:
    broken = Verdict(shown=Shown.BROKEN, why="wrong-head")
    proven = found("wrong-head", "TW401", Severity.ERROR)
    report = judge(regressor(), proven)
    assert report.verdict == broken and exit_status(report) == 1


def test_what_thirty_steps_say_of_learning_is_said_only_where_the_run_agrees(judge) -> None:
    shortly = found("unlearnable-batch", "TW801", Severity.WARNING)
    report = judge(regressor(), shortly)
    assert report.findings == ()
    report = judge(empty(), shortly)
    assert [f.name for f in report.findings] == ["unlearnable-batch"]


def test_an_exception_at_the_end_of_the_script_is_its_failure(judge) -> None:
    record = regressor()
    record.ended.failure = Failure(type="FileNotFoundError", message="no such folder", where=AT)
    report = judge(record)
    assert report.failure == record.ended.failure and report.stages[-1].status == Status.FAILED
    assert report.verdict is not None and report.verdict.shown == Shown.BROKEN and exit_status(report) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("You should supply an encoding or a list of encodings that includes input_ids, but you gave ['label']", "the raw one, not the tokenized one"),
        ("Classification metrics can't handle a mix of multiclass and continuous-multioutput targets", "Take the argmax"),
        ("nobody knows this", "mend the line that raises"),
    ],
    ids=["untokenized", "scores", "unknown"],
)  # fmt: skip
def test_what_is_known_of_an_exception_is_its_remedy(judge, message: str, told: str) -> None:
    record = regressor()
    record.ended.failure = Failure(type="ValueError", message=message, where=AT)
    report = judge(record)
    first = report.first_cause
    assert first is not None and first.name == "script-stopped" and first.fix is not None and told in first.fix.does


def test_an_error_that_would_have_ended_the_run_is_refuted_by_it(judge) -> None:
    raising = found("label-out-of-range", "TW401", Severity.ERROR)
    report = judge(regressor(), raising)
    assert report.findings == () and report.verdict is not None and report.verdict.shown == Shown.LEARNS
    record = regressor()
    record.ended.failure = Failure(type="IndexError", message="Target 3 is out of bounds.", where=AT)
    report = judge(record, raising)
    assert report.verdict is not None and report.verdict.why == "label-out-of-range"
    assert [f.name for f in report.findings] == ["label-out-of-range"]


@pytest.mark.parametrize("has_gradients", [True, False])
def test_a_step_without_a_gradient_is_refuted_by_weights_that_get_some_and_move(judge, has_gradients: bool) -> None:
    record = regressor()
    record.parameters = parameters(had_gradient=has_gradients)
    report = judge(record, found("no-gradient", "TW503", Severity.ERROR))
    assert [f.name for f in report.findings if f.name == "no-gradient"] == ([] if has_gradients else ["no-gradient"])
    assert (exit_status(report) == 0) == has_gradients


def test_a_script_that_made_no_update_is_shown_as_far_as_its_last_run_with_repairs_came(judge) -> None:
    record = Record()
    record.ended.failure = Failure(type="TypeError", message="unexpected keyword", where=AT)
    proven, last = found("renamed-argument", "TW001", Severity.ERROR), regressor()
    last.earlier = [
        Ended(failure=Failure(type="NameError", message="name 'x' is not defined", where=Place("train.py", 9)))
    ]
    last.changed = ("line 9: print(…) is left out",)
    report = judge(record, proven, last=last, names=("renamed-argument",))
    assert report.verdict is not None and report.verdict.shown == Shown.BROKEN
    assert [(f.name, f.after_repair) for f in report.findings] == [
        ("renamed-argument", ()),
        ("script-stopped", ("renamed-argument",)),
    ]
    row = report.stages[-1]
    assert (
        row.status == Status.REPAIRED and "copy with 1 line changed, with the faults above fixed in memory" in row.why
    )
    assert report.sheet is not None and report.sheet.updates == last.updates
    told = "With renamed-argument fixed in memory, a copy (line 9: print(…) is left out) was run again"
    assert told in report.message and "judged by itself: learns" in report.message
    assert judge(record, proven).sheet is None
    begun = regressor()
    begun.ended.failure = record.ended.failure
    report = judge(begun, proven, last=last, names=("renamed-argument",))
    assert "was run again" not in report.message and report.stages[-1].status == Status.FAILED


def test_a_further_run_that_was_cut_is_not_said_to_learn_nothing(judge) -> None:
    record, last = Record(), regressor(0.9, 0.0)
    record.ended.failure = Failure(type="TypeError", message="unexpected keyword", where=AT)
    proven = found("renamed-argument", "TW001", Severity.ERROR)
    report = judge(record, proven, last=last, names=("renamed-argument",))
    assert [f.name for f in report.findings] == ["renamed-argument", "held-out-at-constant"]
    assert "judged by itself: does not learn" in report.message
    last.trainings = [replace(one, is_cut=True) for one in last.trainings]
    report = judge(record, proven, last=last, names=("renamed-argument",))
    assert [f.name for f in report.findings] == ["renamed-argument"] and "judged by itself: not shown" in report.message


def test_what_stops_a_run_behind_a_repair_is_told_once_in_its_place(judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a later run has its line passed from the beginning; not where the script as it is stops there, or it is silenced."""
    record, passed, last = Record(), Record(), regressor()
    record.ended.failure = Failure(type="TypeError", message="unexpected keyword", where=AT)
    passed.earlier = [
        Ended(failure=Failure(type="NameError", message="name 'x' is not defined", where=Place("train.py", 9)))
    ]
    passed.updates, last.changed = 1, ("line 9: print(…) is left out",)
    proven = [found("renamed-argument", "TW001", Severity.ERROR), found("broadcast-loss", "TW402", Severity.ERROR)]
    runs = [JudgedRun(passed, ("renamed-argument",)), JudgedRun(last, ("renamed-argument", "broadcast-loss"))]
    proven[1] = replace(proven[1], after_repair=("renamed-argument",))
    monkeypatch.setattr("trainwright.judging.report.judge_repaired", lambda *given: Repaired(proven, [], runs))
    report = judge_run(Report(script="train.py"), record, Options())
    assert [(f.name, len(f.after_repair)) for f in report.findings] == [
        ("renamed-argument", 0), ("broadcast-loss", 1), ("script-stopped", 1),
    ]  # fmt: skip
    assert "broadcast-loss fixed in memory, a copy (line 9" in report.message
    for options in (Options(ignore=("script-stopped",)), Options(training=1)):
        silenced = judge_run(Report(script="train.py"), record, options)
        assert "script-stopped" not in [f.name for f in silenced.findings]
    record.earlier, record.ended = [record.ended], passed.earlier[0]
    stops = [f for f in judge_run(Report(script="train.py"), record, Options()).findings if f.name == "script-stopped"]
    assert [(f.where, f.after_repair) for f in stops] == [(Place("train.py", 9), ())]


def test_an_exception_that_the_check_has_explained_is_not_told_again(judge) -> None:
    record = Record()
    record.ended.failure = Failure(type="TypeError", message="unexpected keyword", where=AT)
    proven = found("renamed-argument", "TW001", Severity.ERROR)
    report = judge(record, proven)
    assert [f.name for f in report.findings] == ["renamed-argument"] and report.failure is None
    assert report.stages[-1].status == Status.FAILED


def test_an_exception_that_a_copy_went_past_is_told_beside_the_one_that_is_explained(monkeypatch, judge) -> None:
    record = regressor()
    record.earlier = [Ended(failure=Failure(type="OSError", message="no such folder", where=Place("train.py", 1)))]
    record.ended = Ended(failure=Failure(type="IndexError", message="Target 2 is out of bounds.", where=AT))
    error = replace(found("label-out-of-range", "TW401", Severity.ERROR), where=Place("train.py", 2))
    look = LookResult(training=0, facts={SetupFacts: SetupFacts(failure=record.ended.failure)}, is_end=True)
    record.looks = [look]
    monkeypatch.setattr(
        "trainwright.judging.report.judge_looks", lambda looks: ([error] if looks == [look] else [], [])
    )
    report = judge(record, error)
    stopped = [f for f in report.findings if f.name == "script-stopped"]
    assert ["no such folder" in f.message for f in stopped] == [True]


@pytest.mark.parametrize("what", ["hindrance", "own_error"])
def test_what_a_rehearsal_lacks_is_no_fault_of_the_script(judge, what: str) -> None:
    record = regressor()
    setattr(record.ended, what, "it asks for typed input")
    report = judge(record)
    assert report.failure is None and report.findings == () and report.stages[-1].status == Status.SKIPPED
    assert exit_status(report) == (2 if what == "own_error" else 0)


def test_a_finding_that_is_ignored_is_left_out(judge) -> None:
    record = regressor()
    record.ended.failure = Failure(type="KeyError", message="'x'", where=AT)
    report = judge(record)
    (name,) = {f.name for f in report.findings}
    report = judge(record, ignore=(name,))
    assert report.findings == ()


def test_a_lower_loss_alone_is_no_warning_where_losses_have_no_labels(judge) -> None:
    tried = Outcome(changed="standardise input", before=(12.3, 12.2, 12.1), after=(10.1, 9.9, 9.8), steps=12)
    found_by_loss = replace(found("unscaled-inputs", "TW106", Severity.WARNING), proof=tried)
    judged_by_constant = replace(found_by_loss, proof=replace(tried, constant=(11.0, 11.0, 11.0)))
    report = judge(Record(updates=60), found_by_loss, judged_by_constant)
    assert report.verdict is not None and report.verdict.shown == Shown.CANNOT_BE_JUDGED
    assert [f.severity for f in report.findings] == [Severity.NOTE, Severity.WARNING]
    report = judge(regressor(), found_by_loss, judged_by_constant)
    assert {f.severity for f in report.findings} == {Severity.WARNING}


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


def test_a_name_that_the_run_has_come_to_is_said_once(judge) -> None:
    guessed = found("undefined-name", "TW013", Severity.WARNING)
    record = replace_end(regressor(), Failure(type="NameError", message="name 'rows' is not defined", where=AT))
    report = judge(record, guessed)
    assert [f.name for f in report.findings if f.where == AT] == ["script-stopped"]
    report = judge(regressor(), guessed)
    assert [f.name for f in report.findings if f.where == AT] == ["undefined-name"]


def replace_end(record: Record, failure: Failure) -> Record:
    record.ended.failure = failure
    return record


def test_an_evaluation_that_only_the_run_made_is_named_among_the_stages(monkeypatch: pytest.MonkeyPatch, judge) -> None:
    piece = PIECES.row(what="evaluated", times=5, first_update=0, last_update=80, how="", where=Place("train.py", 95))
    monkeypatch.setattr("trainwright.review.sheet.pieces", lambda record: (piece,))
    rows = {run.stage: run.why for run in judge(regressor()).stages}
    assert rows[Stage.EVALUATION] == "the rehearsal evaluated 5 times at train.py:95"
    monkeypatch.setattr("trainwright.review.sheet.pieces", lambda record: ())
    assert {run.stage: run.why for run in judge(regressor()).stages}[Stage.EVALUATION] == UNSEEN_EVALUATION


def test_an_error_of_ours_in_the_second_check_leaves_the_first_report(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("a = 1\nb = 2\nfit(x, evaluation_strategy=1)\n")
    fix = Fix(does="rename it", edits=(RenameKeyword("train.py", 3, "evaluation_strategy", "eval_strategy"),))
    first = Report(script="train.py", findings=(replace(found("renamed-argument", "TW001", Severity.ERROR), fix=fix),))

    def again(copies: object) -> Report:
        raise KeyError("a fault of ours")

    report = verify_fixes(first, again)
    assert report == replace(first, internal_errors=("the second check: KeyError: 'a fault of ours'",))
    assert exit_status(report) == 2


def test_a_stage_that_the_run_did_not_reach_is_not_said_to_be_shown_by_it() -> None:
    """Facts that have no words pass no stage."""
    facts = {LossFacts: LossFacts(chance_nats=2.8904, classes=18), OddRowFacts: OddRowFacts()}
    look = LookResult(facts=facts, training=1)
    for record, unseen in ((Record(), NOT_REACHED), (regressor(), IN_RUN)):
        stages = {run.stage: run for run in with_training(Report(script="train.py"), [look], record).stages}
        assert (stages[Stage.OVERFIT].status, stages[Stage.OVERFIT].why) == (Status.SKIPPED, unseen)
        assert stages[Stage.GRADIENTS].why == unseen
        assert stages[Stage.LOSS].why == "no value was seen; chance is 2.8904 over 18 classes"


def test_a_forward_pass_that_raised_is_failed_where_nothing_came_behind_it() -> None:
    failure = Failure(type="RuntimeError", message="not today", where=AT)
    look = LookResult(facts={ForwardFacts: ForwardFacts(failure=failure)}, training=1)
    for record, status in ((Record(), Status.FAILED), (regressor(), Status.PASSED)):
        stages = {run.stage: run for run in with_training(Report(script="train.py"), [look], record).stages}
        assert stages[Stage.FORWARD].status == status
