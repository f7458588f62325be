"""What is rehearsed of a training that a launcher starts in several processes."""

import sys
from typing import Any

import pytest

from trainwright import checking, runs
from trainwright.core import Report, Severity, Shown, Verdict
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.record import Record, Training
from trainwright.rehearsal.record_parts import Ended
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.run import _note_end
from trainwright.review.review import review
from trainwright.seams.isolation.tally import KeptAway
from trainwright.start.launchers import understood
from trainwright.start.program import Program


@pytest.mark.parametrize("size", ["1", "2"])
def test_one_of_several_processes_is_run_as_if_it_were_alone(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, str]] = []

    class Begun:
        def __init__(self, *_: Any, environment: dict[str, str], **__: Any) -> None:
            begun.append(environment)

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(runs, "Rehearsal", Begun)
    for name, value in {"RANK": "0", "WORLD_SIZE": size, "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with runs.open_runs(Program(script="t.py"), Options(), print):
        pass
    assert begun[0].get("WORLD_SIZE") == (None if size == "1" else "1") and begun[0].get("MASTER_PORT") != "1"


def test_the_verdict_says_that_one_of_several_was_run() -> None:
    report = Report(script="t.py", verdict=Verdict(shown=Shown.LEARNS, why="after 9 updates"))
    several = understood(["torchrun", "--nproc_per_node", "4", "t.py"]).processes
    verdict = checking._said_of_one(report, several).verdict
    assert verdict is not None and verdict.why == "after 9 updates; this is one process of 4, run alone"
    assert checking._said_of_one(report, understood(["torchrun", "t.py"]).processes) == report


def test_a_command_line_that_is_refused_is_no_broken_script() -> None:
    recorder = Recorder()
    _note_end(SystemExit(2), recorder, KeptAway())
    assert recorder.record.ended.failure is None and "refuses its arguments" in recorder.record.ended.hindrance
    assert not review(recorder.record).findings
    left = Recorder()
    _note_end(SystemExit("no data"), left, KeptAway())
    assert left.record.ended.failure is None and left.record.ended.hindrance == "it ends itself, saying 'no data'"
    trained = Recorder()
    trained.record.updates = 5
    _note_end(SystemExit(2), trained, KeptAway())
    assert trained.record.ended.failure is not None


def left(record: Record, code: object, *, in_loop: bool = False) -> Ended:
    """How a script ended that was left with this code."""
    recorder = Recorder()
    recorder.record = record
    try:
        for _ in range(int(in_loop)):
            sys.exit(code)
        sys.exit(code)
    except SystemExit as error:
        _note_end(error, recorder, KeptAway())
    return record.ended


def trained(**changed: object) -> Record:
    return Record(updates=5, trainings=[Training(number=1, begins=0, **{"kind": "loop", **changed})])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (1, "ends with status 1; what"),
        ({"accuracy": 0.9}, "ends with status 1, for sys.exit was given \"{'accuracy': 0.9}\"; what"),
    ],
)
def test_a_status_behind_the_training_is_a_warning_with_the_line(code: object, told: str) -> None:
    record = trained()
    left(record, code)
    (finding,) = [one for one in review(record).findings if one.name == "script-stopped"]
    assert finding.severity == Severity.WARNING and told in finding.message
    assert finding.where is not None and finding.where.file.endswith("test_rehearsed_processes.py")
    report = judge_run(Report(script="t.py"), record, Options())
    assert checking._why_not_trained(report, "cpu") == ""


@pytest.mark.parametrize("code", [None, 0, False])
def test_an_exit_with_status_0_is_none(code: object) -> None:
    ended = left(trained(), code)
    assert ended.exit is None and ended.failure is None and not ended.hindrance


def test_an_exit_within_the_training_is_an_error() -> None:
    assert left(trained(), 1, in_loop=True).failure is not None
    assert left(trained(kind="Trainer"), 1).failure is not None  # its call is under way
    ended = left(trained(kind="Trainer", ends=5), 1)
    assert ended.failure is None and ended.exit is not None


def test_an_exit_behind_a_training_that_was_cut_short_may_come_of_that() -> None:
    ended = left(trained(is_cut=True), 1)
    assert ended.exit is None and ended.failure is None and "cut short" in ended.hindrance
