"""The debugger's check before a training: what is said of it when it fails, is cut short, or is interrupted."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import trainwright
from lm_material import small_recipe
from trainwright.core import RULE_STAGES, Report, StageRun, Status
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training.train import train

NO_FAULT = "no fault found"


@pytest.fixture
def check_script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A debugger that reports so, or raises so, after it has changed the model and not put it back."""

    def made(outcome: Report | BaseException) -> None:
        def check(*, model: torch.nn.Module, **_: Any) -> Report:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.zero_()
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(trainwright, "check", check)

    return made


def report(*stages: tuple[Status, str], **more: Any) -> Report:
    """A report in which the first stages ended so, and the others passed."""
    runs = [StageRun(stage=stage, status=Status.PASSED) for stage in RULE_STAGES]
    for number, (status, why) in enumerate(stages):
        runs[number] = dataclasses.replace(runs[number], status=status, why=why)
    return Report(script="here", stages=tuple(runs), **more)


def trained(data: PreparedData, folder: Path, check: str) -> dict[str, torch.Tensor]:
    train(data, folder, small_recipe("run.updates=3", f"run.check={check}"))
    return dict(open_run(folder, "last").model.state_dict())


NO_ACCELERATE = "ModuleNotFoundError: No module named 'accelerate'"


@pytest.mark.parametrize(("outcome", "why", "checked"), [
    (report((Status.FAILED, NO_ACCELERATE), *[(Status.SKIPPED, "the setup stage failed")] * 9),
     f"setup: {NO_ACCELERATE}", "begins unchecked"),
    (report(internal_errors=("rule x: KeyError: 'y'",)), "rule x: KeyError: 'y'", "only these stages checked: setup, dataset"),
    (ModuleNotFoundError("No module named 'accelerate'"), NO_ACCELERATE, "begins unchecked"),
    (Report(script="here", message="No training call was reached."), "No training call was reached", "begins unchecked"),
])  # fmt: skip
def test_a_check_that_failed_is_said_to_be_our_failure_and_the_training_is_that_of_no_check(
    outcome: Any, why: str, checked: str, data: PreparedData, tmp_path: Path, said: list[str], check_script: Any
) -> None:
    check_script(outcome)
    after = trained(data, tmp_path / "run", "true")
    (line,) = [text for text in said if "debugger" in text]
    assert f"The debugger failed before the training: {why}" in line
    assert "an internal error in Trainwright" in line and checked in line
    assert NO_FAULT not in line
    without = trained(data, tmp_path / "without", "false")
    assert all(torch.equal(after[name], without[name]) for name in without)


def test_stages_that_the_time_did_not_allow_are_named_beside_what_was_found(
    data: PreparedData, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = report()
    runs = list(cut.stages)
    runs[-2] = dataclasses.replace(runs[-2], status=Status.SKIPPED, why="the budget of 20 s ran out")
    runs[-3] = dataclasses.replace(runs[-3], status=Status.SKIPPED, why="there is no evaluation set")
    monkeypatch.setattr(trainwright, "check", lambda **_: dataclasses.replace(cut, stages=tuple(runs)))
    train(data, tmp_path / "run", small_recipe("run.updates=3", "run.check=true"))
    (line,) = [text for text in said if "debugger" in text]
    assert line.endswith(f": {NO_FAULT}; not checked: overfit (the budget of 20 s ran out).")


def test_ctrl_c_during_the_check_ends_the_command(data: PreparedData, tmp_path: Path, check_script: Any) -> None:
    check_script(
        report(
            (Status.SKIPPED, "the check was interrupted"), message="Interrupted: the report shows the results so far."
        )
    )
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "run", small_recipe("run.check=true"))
    assert not (tmp_path / "run" / "log.jsonl").exists()
