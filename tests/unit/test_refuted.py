"""What the run was seen to do, no finding says it cannot do."""

from dataclasses import replace

import pytest

from records import classifier, parameters
from trainwright.core import Failure, Finding, Place, Severity, Shown, Verdict
from trainwright.frameworks.packages import TrainingKind
from trainwright.judging.refuted import without_refuted
from trainwright.rehearsal.record import Number, Record, Training
from trainwright.rehearsal.record_parts import Ended

LEARNS, FLAT = (Verdict(shown=shown, why="") for shown in (Shown.LEARNS, Shown.DOES_NOT_LEARN))


def finding(name: str, stage: str = "TW201", **more: object) -> Finding:
    made = Finding(message=name, measured={}, severity=Severity.ERROR, code=stage, name=name)
    return replace(made, **more)  # type: ignore[arg-type]


def left(found: Finding, record: Record, verdict: Verdict | None = LEARNS) -> bool:
    return bool(without_refuted([found], record, verdict))


def test_a_run_that_went_on_did_not_stop() -> None:
    record = classifier()
    assert not left(finding("untokenized-dataset", "TW101"), record)
    assert not left(finding("unknown-best-metric", "TW704"), record)
    record.ended = Ended(is_cut=True, update=100)
    assert not left(finding("untokenized-dataset", "TW101"), record)
    assert left(finding("unknown-best-metric", "TW704"), record)  # its evaluation may come behind the end of the time
    record.ended = Ended(failure=Failure(type="KeyError", message="input_ids", where=Place("t.py", 3)))
    assert left(finding("untokenized-dataset", "TW101"), record)


def test_a_copy_of_the_script_refutes_nothing() -> None:
    assert left(finding("untokenized-dataset", "TW101"), replace(classifier(), changed=("line 3",)))


def test_weights_that_move_do_not_stand_still() -> None:
    record = classifier()
    record.parameters = parameters()
    assert not left(finding("unstepped-optimizer", "TW601"), record)
    record.parameters = parameters(has_moved=False)
    assert left(finding("unstepped-optimizer", "TW601"), record)
    record.parameters = [*parameters(), *parameters(is_held=False, has_moved=False)]  # another optimizer may never step
    assert left(finding("unstepped-optimizer", "TW601"), record)


def test_what_was_trained_before_it_was_frozen_is_not_untrained() -> None:
    record = classifier()
    assert left(finding("frozen-untrained-layers", "TW615"), record)
    record.parameters = parameters(is_trainable=False)
    assert not left(finding("frozen-untrained-layers", "TW615"), record)


@pytest.mark.parametrize(("verdict", "is_left"), [(LEARNS, False), (FLAT, True), (None, True)])
def test_what_learns_is_not_said_to_learn_nothing(verdict: Verdict | None, is_left: bool) -> None:
    assert left(finding("unlearnable-batch", "TW801"), classifier(), verdict) == is_left


def test_a_schedule_is_judged_by_the_plan_that_the_run_had() -> None:
    record = classifier()
    found = finding("schedule-in-wrong-unit", "TW608", measured={"planned_updates": 50_280})
    assert not left(found, record)
    record.trainings = [Training(number=1, kind="loop", begins=0, ends=record.updates, planned=50_280)]
    assert left(found, record)


def test_the_plan_of_a_fit_is_in_batches_and_a_finding_speaks_of_updates() -> None:
    record, plan = classifier(), {"planned_updates": 50, "batches_per_update": 4}
    for kind, is_left in ((TrainingKind.FIT, True), (TrainingKind.LOOP, False)):
        record.trainings = [Training(number=1, kind=kind, begins=0, ends=200, planned=200)]
        assert left(finding("schedule-in-wrong-unit", "TW608", measured=plan), record) == is_left


def test_a_training_without_an_update_has_no_plan() -> None:
    record = classifier()
    none = Training(number=1, kind="loop", begins=0, ends=0)
    record.trainings = [none, Training(number=2, kind="loop", begins=0, ends=record.updates, planned=50_280)]
    assert not left(finding("schedule-in-wrong-unit", "TW608", measured={"planned_updates": record.updates}), record)


def test_a_training_that_learns_refutes_a_probe_that_reads_nothing() -> None:
    unread = finding("misaligned-labels", "TW105", is_by_probe=True)
    assert not left(unread, classifier())
    in_part = Verdict(shown=Shown.LEARNS_IN_PART, why="")  # the labels of one set may be those of other rows
    assert left(unread, classifier(), in_part)
    assert left(finding("misaligned-labels", "TW105"), classifier())


def test_where_the_run_has_stopped_nobody_need_guess() -> None:
    record = classifier()
    record.ended = Ended(failure=Failure(type="KeyError", message="best", where=Place("t.py", 13)))
    findings = [finding("undefined-name", "TW003", where=Place("t.py", 13)), finding("missing-loss", "TW402")]
    assert [one.name for one in without_refuted(findings, record, None)] == ["missing-loss"]


def test_only_what_is_refuted_is_left_out() -> None:
    findings = [finding("no-gradient", "TW501"), finding("misspelled-method", "TW008", where=Place("t.py", 3))]
    record = classifier()
    record.parameters, record.ended = parameters(), Ended(is_cut=True)
    shown = without_refuted([*findings, finding("unlisted", "TW701")], record, None)
    assert [one.name for one in shown] == ["unlisted"]


def test_a_number_that_was_reported_is_not_missing() -> None:
    record = classifier()
    record.ended = Ended(is_cut=True)
    missing = finding("unknown-best-metric", "TW710", measured={"monitor": "Val_loss"})
    assert left(missing, record)
    record.numbers = [Number(update=1, name="val_loss", value=0.5, source="logged")]
    assert not left(missing, record)
    assert left(finding("wrong-metric-direction", "TW705", measured={"monitor": "val_loss"}), record)
