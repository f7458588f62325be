"""What is rehearsed of a training that a launcher starts in several processes."""

from typing import Any

import pytest

from trainwright import checking, rehearsing
from trainwright.core import Shown
from trainwright.core.report import Report
from trainwright.core.verdict import Verdict
from trainwright.options import Options
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

    monkeypatch.setattr(rehearsing, "Rehearsal", Begun)
    for name, value in {"RANK": "0", "WORLD_SIZE": size, "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with rehearsing.rehearsing(Program(script="t.py"), Options(), print):
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
