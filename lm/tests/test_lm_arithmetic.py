"""Which number format and how many threads a training takes: as measured, as asked, as begun. No clock decides here."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_material import SMALL, small_recipe
from trainwright.errors import UsageError
from trainwright_lm.commands.train import train as train_command
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs.checkpoint import State
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training import arithmetic as speed
from trainwright_lm.training import optimizers
from trainwright_lm.training import train as training_module
from trainwright_lm.training.arithmetic import Arithmetic, Stopwatch, TimedTrial, decide_arithmetic, for_evaluation
from trainwright_lm.training.assembly import with_vocabulary
from trainwright_lm.training.processes import Processes
from trainwright_lm.training.train import train

CPU = Processes(device=torch.device("cpu"))
Rates = Callable[[TimedTrial], float]


@dataclass
class Clock:
    """Says what a trial takes instead of measuring it."""

    seconds: Rates
    asked: list[TimedTrial] = field(default_factory=list)

    def __call__(self, trial: TimedTrial) -> float:
        self.asked.append(trial)
        return self.seconds(trial)


def slow(precision: str, times: float = 75.0) -> Rates:
    return lambda trial: times if trial.precision == precision else 1.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rates], Clock]:
    """A machine on which trials take so long."""

    def made(seconds: Rates) -> Clock:
        clock = Clock(seconds)
        monkeypatch.setattr(speed, "Stopwatch", lambda recipe, device: clock)
        return clock

    return made


@pytest.fixture
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def measured(*settings: str) -> Recipe:
    return small_recipe("run.precision=auto", *settings)


def state_of(run: Path, step: int = 12) -> State:
    return checkpoints.read_state(checkpoints.step_folder(run / "checkpoints", step))


def heading(run: Path) -> dict[str, Any]:
    first: dict[str, Any] = json.loads((run / "log.jsonl").read_text().splitlines()[0])
    return first


@dataclass
class Used:
    """The formats and threads that a training really computed in."""

    passes: set[str] = field(default_factory=set)
    products: set[torch.dtype] = field(default_factory=set)
    threads: set[int] = field(default_factory=set)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Used:
    used = Used()
    computing, orthogonal, take_update = (training_module.computing, optimizers.orthogonal, training_module.take_update)

    def passes(precision: str, device: torch.device) -> Any:
        used.passes.add(precision)
        return computing(precision, device)

    def products(matrices: torch.Tensor, computed_in: torch.dtype) -> torch.Tensor:
        used.products.add(computed_in)
        return orthogonal(matrices, computed_in)

    def update(training: Any, number: int) -> Any:
        used.threads.add(torch.get_num_threads())
        return take_update(training, number)

    monkeypatch.setattr(training_module, "computing", passes)
    monkeypatch.setattr(optimizers, "orthogonal", products)
    monkeypatch.setattr(training_module, "take_update", update)
    return used


# Formats


@pytest.mark.parametrize(
    ("lost", "taken", "dtype"), [("bf16", "fp32", torch.float32), ("fp32", "bf16", torch.bfloat16)]
)
def test_where_a_format_is_slow_passes_and_muons_products_are_in_the_other(
    lost: str, taken: str, dtype: torch.dtype, data: PreparedData, tmp_path: Path, said: list[str], machine: Any,
    used: Used,
) -> None:  # fmt: skip
    clock = machine(slow(lost))
    train(data, tmp_path / "run", measured())
    assert (used.passes, used.products) == ({taken}, {dtype})
    state = state_of(tmp_path / "run")
    assert (state.precision, state.muon_precision) == (taken, taken)
    assert f"Computes in {taken} (measured: {lost} takes 75.0 times as long)" in said[0]
    assert "Muon" not in said[0]
    assert heading(tmp_path / "run")["kind"] == "computing"
    assert (heading(tmp_path / "run")["precision"], heading(tmp_path / "run")["line"]) == (taken, said[0])
    assert {trial.what for trial in clock.asked} == {"product", "muon"}  # a pass was not waited for


@pytest.mark.slow
def test_the_rehearsal_computes_muons_products_in_the_same_format(
    data: PreparedData, tmp_path: Path, said: list[str], machine: Any, used: Used
) -> None:
    machine(slow("bf16"))
    train(data, tmp_path / "run", measured("run.check=true", "run.updates=3"))
    assert used.products == {torch.float32}


def test_where_products_are_near_each_other_a_pass_decides_and_muon_by_itself(machine: Any) -> None:
    rates = {"product": 1.5, "pass": 0.6, "muon": 30.0}
    machine(lambda trial: rates[trial.what] if trial.precision == "bf16" else 1.0)
    decision = decide_arithmetic(measured(), None, CPU)
    assert decision == Arithmetic(precision="bf16", muon_precision="fp32", threads=1)
    assert "Computes in bf16 (measured: fp32 takes 1.7 times as long), Muon's products in fp32" in decision.line


def test_a_small_gain_does_not_pay_for_less_exact_numbers(machine: Any) -> None:
    machine(slow("fp32", 1.05))
    decision = decide_arithmetic(measured(), None, CPU)
    assert decision.precision == decision.muon_precision == "fp32"
    assert "bf16 is no faster" in decision.line


def test_adamw_has_no_products_of_muon_to_measure(machine: Any) -> None:
    clock = machine(slow("fp32", 2.0))
    assert decide_arithmetic(measured("optimizer.name=adamw"), None, CPU).muon_precision == "bf16"
    assert {trial.what for trial in clock.asked} == {"product", "pass"}


@pytest.mark.parametrize("bad", [(1, 2, 4), (1, 3), (2, 5, 6)])
def test_slow_goes_of_the_faster_format_do_not_decide(bad: tuple[int, ...], machine: Any) -> None:
    counts: Counter[TimedTrial] = Counter()

    def disturbed(trial: TimedTrial) -> float:
        counts[trial] += 1
        if trial.precision == "bf16":
            return 50.0 if counts[trial] in bad else 1.0
        return 2.0

    machine(disturbed)
    assert decide_arithmetic(measured("optimizer.name=adamw"), None, CPU).precision == "bf16"


def test_what_has_lost_is_not_waited_for_again_and_again(machine: Any) -> None:
    clock = machine(slow("bf16"))
    decide_arithmetic(measured("run.threads=1"), None, CPU)
    assert Counter(clock.asked)[TimedTrial(what="product", precision="bf16")] == speed.GOES_TO_LOSE
    assert Counter(clock.asked)[TimedTrial(what="product", precision="fp32")] == speed.GOES + 1
    assert TimedTrial(what="pass", precision="bf16") not in clock.asked


def test_a_format_that_the_device_refuses_is_not_taken(machine: Any) -> None:
    machine(lambda trial: math.inf if trial.precision == "bf16" else 1.0)
    assert decide_arithmetic(measured(), None, CPU).precision == "fp32"


def test_a_fixed_format_is_not_measured(data: PreparedData, tmp_path: Path, machine: Any, used: Used) -> None:
    clock = machine(slow("bf16"))
    train(data, tmp_path / "run", small_recipe("run.precision=bf16"))
    assert (used.passes, used.products) == ({"bf16"}, {torch.bfloat16})
    assert not clock.asked
    assert "Computes in bf16 (as asked)" in heading(tmp_path / "run")["line"]


# Threads


def test_one_thread_is_taken_where_two_wait_for_each_other_and_all_where_they_help(
    machine: Any, without_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "thread_counts", lambda: [1, 2, 4])
    machine(lambda trial: float(trial.threads) ** 4)
    busy = decide_arithmetic(small_recipe(), None, CPU)
    assert busy.threads == 1 and "1000 ms on 1, 16000 ms on 2" in busy.line
    machine(lambda trial: 1 / trial.threads)
    assert decide_arithmetic(small_recipe(), None, CPU).threads == 4
    machine(lambda trial: 1.0 if trial.threads == 1 else 0.95)
    assert decide_arithmetic(small_recipe(), None, CPU).threads == 1


def test_the_middle_go_decides_about_threads(
    machine: Any, without_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads that are fast in one go of five are slow in a training."""
    counts: Counter[TimedTrial] = Counter()

    def lucky(trial: TimedTrial) -> float:
        counts[trial] += 1
        return 1.0 if trial.threads == 1 or counts[trial] % 5 == 0 else 3.0

    monkeypatch.setattr(speed, "thread_counts", lambda: [1, 2])
    machine(lambda trial: lucky(trial) / trial.threads)
    assert decide_arithmetic(small_recipe(), None, CPU).threads == 1


def test_the_training_runs_on_the_chosen_threads_and_leaves_torchs_as_they_were(
    data: PreparedData, tmp_path: Path, machine: Any, used: Used, without_variables: None, said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(speed, "thread_counts", lambda: [1, 2])
    machine(lambda trial: 1 / trial.threads)
    before = torch.get_num_threads()
    train(data, tmp_path / "run", small_recipe("run.updates=3"))
    assert used.threads == {2} and torch.get_num_threads() == before
    assert state_of(tmp_path / "run", 3).threads == 2
    assert "on 2 threads (measured, one layer: 1000 ms on 1, 500 ms on 2)" in said[0]


def test_a_variable_or_a_setting_fixes_the_threads_and_is_named(
    machine: Any, without_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = machine(slow("bf16"))
    asked = decide_arithmetic(small_recipe("run.threads=3"), None, CPU)
    assert asked.threads == 3 and "on 3 threads (as asked)" in asked.line
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    named = decide_arithmetic(small_recipe(), None, CPU)
    assert named.threads == torch.get_num_threads() and "(OMP_NUM_THREADS)" in named.line
    assert not clock.asked


def test_all_numbers_of_threads_are_powers_of_two_or_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    assert speed.thread_counts() == [1, 2, 4, 6]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert speed.thread_counts() == [1]


def test_a_number_of_threads_that_no_machine_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"run\.threads must be at most 1024; got 5000"):
        small_recipe("run.threads=5000")


# A run that goes on


def cut_back(run: Path, step: int) -> None:
    """As after a kill -9 when that checkpoint was the newest."""
    for later in checkpoints.steps(run / "checkpoints"):
        if later > step:
            shutil.rmtree(checkpoints.step_folder(run / "checkpoints", later))


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_what_it_began_with_though_the_machine_is_another_by_then(
    data: PreparedData, tmp_path: Path, machine: Any, used: Used, without_variables: None, said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(speed, "thread_counts", lambda: [1, 2])
    machine(lambda trial: (2.0 if trial.precision == "fp32" else 1.0) / (trial.threads or 1))
    train(data, tmp_path / "run", measured())
    shutil.copytree(tmp_path / "run", tmp_path / "whole")
    cut_back(tmp_path / "run", 6)
    clock = machine(lambda trial: (1.0 if trial.precision == "fp32" else 99.0) * (trial.threads or 1) ** 4)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    said.clear()
    train(data, tmp_path / "run", measured())
    assert not clock.asked
    assert said[0] == "Computes in bf16 (as this run began), on 2 threads (as this run began)."
    assert not [text for text in said if text.startswith("No longer bit for bit")]
    assert (used.passes, used.products, used.threads) == ({"bf16"}, {torch.bfloat16}, {2})
    for name in (checkpoints.MODEL, checkpoints.OPTIMIZER):
        ended = [
            (checkpoints.step_folder(tmp_path / run / "checkpoints", 12) / name).read_bytes()
            for run in ("run", "whole")
        ]
        assert ended[0] == ended[1]
    assert heading(tmp_path / "run") == heading(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_that_goes_on_in_another_way_when_asked_says_so(
    data: PreparedData, tmp_path: Path, machine: Any, said: list[str]
) -> None:
    machine(slow("fp32", 2.0))
    train(data, tmp_path / "run", measured("run.threads=1"))
    cut_back(tmp_path / "run", 6)
    train(data, tmp_path / "run", small_recipe("run.threads=2", "run.precision=fp32"))
    told = [text for text in said if text.startswith("No longer bit for bit the same from here on")]
    assert [text.partition(": ")[2] for text in told] == [
        "precision changes from bf16 to fp32.",
        "precision of Muon's products changes from bf16 to fp32.",
        "threads change from 1 to 2.",
    ]
    cut_back(tmp_path / "run", 9)
    said.clear()
    train(data, tmp_path / "run", measured())  # and keeps that
    assert said[0] == "Computes in fp32 (as this run began), on 2 threads (as this run began)."


def test_a_run_of_an_earlier_version_goes_on_with_muon_in_bf16(machine: Any) -> None:
    """Checkpoints were written without these two fields."""
    clock = machine(slow("bf16"))
    recipe = as_tables(measured())
    del recipe["run"]["threads"]
    old = State(update=3, recipe=recipe, data="abc", precision="fp32")
    decision = decide_arithmetic(measured(), old, CPU)
    assert decision == Arithmetic(precision="fp32", muon_precision="bf16", threads=torch.get_num_threads())
    assert not clock.asked


@pytest.mark.slow
def test_the_command_goes_on_with_its_own_recipe_but_for_the_threads_that_are_asked_for(
    data: PreparedData, tmp_path: Path, said: list[str], machine: Any
) -> None:
    machine(slow("bf16"))
    assert train_command(data.folder, out=tmp_path / "run", settings=list(SMALL), threads=1) == 0
    cut_back(tmp_path / "run", 6)
    assert train_command(data.folder, out=tmp_path / "run", threads=2) == 0
    assert state_of(tmp_path / "run").threads == 2
    with pytest.raises(UsageError, match=r"run\.precision must be one of auto, fp32, bf16"):
        train_command(data.folder, out=tmp_path / "run", precision="fp16")


# Several processes, evaluation, the real clock


def test_all_processes_take_what_the_first_one_decided(machine: Any, without_variables: None) -> None:
    sent: list[Any] = []

    class First(Processes):
        def given(self, value: Any) -> Any:
            sent.append(value)
            return value

    class Second(Processes):
        def given(self, value: Any) -> Any:
            return sent.pop(0)

    clock = machine(slow("fp32", 2.0))
    first = decide_arithmetic(measured(), None, First(device=CPU.device, count=2))
    asked = len(clock.asked)
    second = decide_arithmetic(measured(), None, Second(device=CPU.device, count=2, rank=1))
    assert first == second
    assert first.precision == "bf16" and "torch's choice" in first.line
    assert len(clock.asked) == asked and not sent


def test_a_loss_is_measured_in_the_runs_format_unless_that_is_emulated_here(
    data: PreparedData, tmp_path: Path, machine: Any
) -> None:
    machine(slow("fp32", 2.0))
    train(data, tmp_path / "run", measured("run.updates=3"))
    run = open_run(tmp_path / "run", "last")
    assert run.precision == "bf16"
    assert for_evaluation(run.recipe, run.precision, CPU.device) == "bf16"
    machine(slow("bf16"))
    assert for_evaluation(run.recipe, run.precision, CPU.device) == "fp32"
    assert for_evaluation(small_recipe("run.precision=bf16"), "bf16", CPU.device) == "bf16"


@pytest.mark.parametrize("settings", [(), ("model.architecture=gpt2", "model.dropout=0.1")])
def test_the_real_clock_measures_each_trial_and_changes_nothing(settings: tuple[str, ...], data: PreparedData) -> None:
    recipe = with_vocabulary(measured(*settings), data)
    torch.manual_seed(3)
    random, threads = torch.get_rng_state(), torch.get_num_threads()
    clock = Stopwatch(recipe, CPU.device)
    for what in ("product", "muon", "pass"):
        for precision in ("fp32", "bf16"):
            for count in (None, 2):
                assert 0 < clock(TimedTrial(what=what, precision=precision, threads=count)) < 60
    assert torch.equal(torch.get_rng_state(), random) and torch.get_num_threads() == threads


@pytest.mark.slow
def test_the_debugger_sees_the_training_and_not_the_measurement(data: PreparedData, tmp_path: Path) -> None:
    settings = [word for setting in SMALL for word in ("--set", setting)]
    words = ["lm", "train", str(data.folder), "--out", str(tmp_path / "run"), *settings, "--set", "data.windows=4",
             "--precision", "auto"]  # fmt: skip
    command = [sys.executable, "-m", "trainwright", "check", "--json", "-", "-m", "trainwright", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    optimizer = next(run for run in report["stages"] if run["stage"] == "optimizer")
    assert "MuonAdamW" in optimizer["why"], report
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_the_command_measures_and_trains_on_this_machine(data: PreparedData, tmp_path: Path) -> None:
    """Whatever is faster here."""
    words = [sys.executable, "-m", "trainwright", "lm", "train", str(data.folder), "--out", "run"]
    words += [word for setting in SMALL for word in ("--set", setting)]
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(
        [*words, "--precision", "auto"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if line.startswith("Computes in"))
    assert "measured" in line and "one layer" in line
    record = heading(tmp_path / "run")
    assert record["line"] == line and record["threads"] >= 1 and record["seconds"]
