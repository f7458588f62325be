"""The loop: exact gradients and losses, what it logs, what it refuses, and how it ends and goes on."""

import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from lm_material import SMALL, small_recipe, small_tokenizer
from trainwright.errors import TrainwrightError, UsageError
from trainwright_lm.config import Recipe
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import claimed, open_run
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training import assembly
from trainwright_lm.training import log as logs
from trainwright_lm.training import train as training_module
from trainwright_lm.training.arithmetic import Arithmetic
from trainwright_lm.training.assembly import assemble, with_vocabulary
from trainwright_lm.training.live import Live, duration
from trainwright_lm.training.plan import Plan, seed_of
from trainwright_lm.training.processes import Processes, SummedLoss, mean_nats
from trainwright_lm.training.train import take_update, train

CPU = torch.device("cpu")
FP32 = Arithmetic(precision="fp32", muon_precision="fp32", threads=0)


def lines(run: Path, kind: str = "train") -> list[dict[str, Any]]:
    return [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if line["kind"] == kind]


def weights(run: Path, checkpoint: str = "last") -> dict[str, torch.Tensor]:
    return dict(open_run(run, checkpoint).model.state_dict())


def gradients(data: PreparedData, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.Tensor]:
    """Those that the optimizer sees in the first update."""
    held: dict[str, torch.Tensor] = {}
    recipe = with_vocabulary(recipe, data)
    training = assemble(data, Path(), recipe, None, Processes(device=CPU), Live(silent=True), FP32)
    named = dict(training.model.named_parameters())
    monkeypatch.setattr(
        type(training.optimizer), "step", lambda own: held.update({k: p.grad.clone() for k, p in named.items()})
    )
    take_update(training, 0)
    return held


def largest_difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    assert a.keys() == b.keys() and a
    return max((a[k] - b[k]).abs().max().item() for k in a)


@pytest.mark.parametrize("more", [(), ('loss.key_tokens=["e","="]', "loss.key_weight=3"), ("loss.z_loss=0.01",)])
def test_gradients_are_those_of_the_whole_update_however_it_is_cut(
    more: tuple[str, ...], data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gradients(data, small_recipe("optimizer.clip=0", *more), monkeypatch)
    for micro in (4, 1):  # 2 and 8 passes
        parts = gradients(data, small_recipe("optimizer.clip=0", f"data.micro_windows={micro}", *more), monkeypatch)
        assert largest_difference(whole, parts) < 1e-6


def first_losses(data: PreparedData, recipe: Recipe) -> tuple[np.ndarray, torch.Tensor]:
    """Inputs (B, T) of the first update and each target's nats under the first weights, in the obvious way."""
    recipe = with_vocabulary(recipe, data)
    torch.manual_seed(recipe.run.seed)
    model = Transformer(recipe.model)
    windows = Windows(data.train, recipe.model.context)
    plan = Plan(windows=windows, seed=recipe.run.seed, at_once=recipe.data.windows, updates=1)
    rows = torch.from_numpy(windows.batch(plan.indices(0)))
    with torch.no_grad():
        nats = F.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:], reduction="none")
    return rows[:, :-1].numpy(), nats


@pytest.mark.parametrize("micro", [0, 2])
def test_the_logged_loss_is_the_mean_per_token_under_accumulation(
    micro: int, data: PreparedData, tmp_path: Path
) -> None:
    recipe = small_recipe("run.updates=1", "schedule.warmup_updates=0", f"data.micro_windows={micro}")
    train(data, tmp_path / "run", recipe)
    _, nats = first_losses(data, recipe)
    assert lines(tmp_path / "run")[0]["loss"] == pytest.approx(nats.mean().item(), abs=1e-5)


def test_a_weighted_loss_is_divided_by_its_weights(data: PreparedData, tmp_path: Path, said: list[str]) -> None:
    """The course's loop multiplied by weights above 1 and divided by none: its loss was too high by their mean."""
    recipe = small_recipe(
        "run.updates=1", "schedule.warmup_updates=0", 'loss.key_tokens=["e","="]', "loss.key_weight=4"
    )
    train(data, tmp_path / "run", recipe)
    inputs, nats = first_losses(data, recipe)
    keys = [ids[0] for word in ("e", " e", "=", " =") if len(ids := small_tokenizer().encode(word)) == 1]
    weights = 1 + 4 * np.isin(inputs, keys).sum(1)
    expected = (nats.numpy() * weights[:, None]).sum() / (weights.sum() * nats.shape[1])
    assert weights.max() > 1
    assert lines(tmp_path / "run")[0]["loss"] == pytest.approx(expected, abs=1e-5)


def test_key_words_that_are_not_one_token_are_named_before_the_training(
    data: PreparedData, tmp_path: Path, said: list[str]
) -> None:
    train(data, tmp_path / "run", small_recipe("run.updates=3", 'loss.key_tokens=["e","matplotlib"]'))
    assert any("'matplotlib' (with and without a blank)" in text for text in said)


def test_every_update_is_in_one_line_of_the_log_the_last_ones_too(data: PreparedData, tmp_path: Path) -> None:
    train(data, tmp_path / "each", small_recipe("run.updates=7", "run.log_every=1"))
    train(data, tmp_path / "three", small_recipe("run.updates=7", "run.log_every=3"))
    each = [line["loss"] for line in lines(tmp_path / "each")]
    three = lines(tmp_path / "three")
    assert [line["update"] for line in three] == [3, 6, 7]
    means = [np.mean(each[:3]), np.mean(each[3:6]), each[6]]
    assert [line["loss"] for line in three] == pytest.approx(means, abs=1e-9)
    assert three[-1]["tokens"] == 7 * 8 * 16


def test_the_rate_falls_in_updates_however_many_passes_one_has(data: PreparedData, tmp_path: Path) -> None:
    """The course's schedule counted passes of the loader: with 8 a step the rate had hardly fallen at the end."""
    rates = []
    for name, micro in (("whole", 0), ("parts", 1)):
        train(
            data,
            tmp_path / name,
            small_recipe("schedule.shape=linear", "run.log_every=1", f"data.micro_windows={micro}"),
        )
        rates.append([line["learning_rate"] for line in lines(tmp_path / name)])
    assert rates[0] == rates[1]
    assert (
        rates[0][0] == pytest.approx(0.003 / 2) and rates[0][1] == 0.003 and rates[0][-1] == pytest.approx(0.003 / 10)
    )


@pytest.mark.parametrize("at_once", [1, 5, 32])
def test_evaluation_counts_each_token_once_whatever_the_batches(at_once: int, data: PreparedData) -> None:
    torch.manual_seed(1)
    model = Transformer(with_vocabulary(small_recipe("model.dropout=0.5"), data).model)
    windows = Windows(data.validation, 16)
    assert len(windows) % 5 and len(windows) % 32
    total = count = 0.0
    with torch.no_grad():
        model.eval()
        for index in range(len(windows)):
            row = torch.from_numpy(windows.batch(np.array([index])))
            nats = F.cross_entropy(model(row[:, :-1]).transpose(1, 2), row[:, 1:], reduction="none")
            total, count = total + nats.double().sum().item(), count + nats.numel()
        model.train()
    assert mean_nats(SummedLoss(model), windows, Processes(device=CPU), at_once=at_once) == pytest.approx(
        total / count, abs=1e-6
    )
    assert model.training


def test_an_evaluation_of_some_windows_takes_them_from_everywhere(data: PreparedData) -> None:
    seen: list[int] = []

    class Spy(Windows):
        def batch(self, indices: np.ndarray) -> np.ndarray:
            seen.extend(indices.tolist())
            return super().batch(indices)

    windows = Spy(data.validation, 16)
    model = Transformer(with_vocabulary(small_recipe(), data).model)
    mean_nats(SummedLoss(model), windows, Processes(device=CPU), limit=4)
    assert seen == [n * len(windows) // 4 for n in range(4)]


@settings(deadline=None, max_examples=50)
@given(count=st.integers(1, 40), at_once=st.integers(1, 60), update=st.integers(0, 9), seed=st.integers(0, 3))
def test_updates_go_through_each_epochs_windows_once(count: int, at_once: int, update: int, seed: int) -> None:
    plan = Plan(windows=SizedOnly(count), seed=seed, at_once=at_once, updates=99)
    row = np.concatenate([plan.indices(number) for number in range(update + 1)])
    assert len(row) == (update + 1) * at_once
    for epoch in range(len(row) // count):
        assert sorted(row[epoch * count : (epoch + 1) * count]) == list(range(count))
    assert (plan.indices(update) == row[-at_once:]).all()


class SizedOnly:
    """Windows, as far as a plan needs them."""

    context = 8

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


def test_random_numbers_differ_between_updates_processes_and_seeds() -> None:
    seeds = {seed_of(seed, update, rank) for seed in range(3) for update in range(50) for rank in range(3)}
    assert len(seeds) == 450


def test_a_check_before_the_training_changes_no_bit_of_it(data: PreparedData, tmp_path: Path, said: list[str]) -> None:
    for name, check in (("checked", "true"), ("not", "false")):
        train(data, tmp_path / name, small_recipe(f"run.check={check}", "model.dropout=0.1", "run.updates=4"))
    a, b = weights(tmp_path / "checked"), weights(tmp_path / "not")
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert [t["loss"] for t in lines(tmp_path / "checked")] == [t["loss"] for t in lines(tmp_path / "not")]
    (check_script,) = [text for text in said if text.startswith("The debugger")]
    assert check_script.endswith(": no fault found.")


def test_a_fault_that_the_check_finds_ends_the_training_before_it_begins(data: PreparedData, tmp_path: Path) -> None:
    recipe = small_recipe("run.check=true", "optimizer.name=adamw", "optimizer.learning_rate=9.0")
    with pytest.raises(UsageError, match="excessive-learning-rate") as raised:
        train(data, tmp_path / "run", recipe)
    assert "run.check=false" in str(raised.value)
    assert not (tmp_path / "run" / "log.jsonl").exists()
    train(data, tmp_path / "run", small_recipe())  # nothing was trained: another recipe may take the folder
    assert open_run(tmp_path / "run", "last").recipe.optimizer.name == "muon"


def test_the_check_takes_short_windows_of_what_is_trained_on_first(data: PreparedData) -> None:
    plan = Plan(windows=Windows(data.train, 64), seed=0, at_once=8, updates=9)
    batches = assembly._first_batches(plan)
    assert len(batches) == assembly.BATCHES
    assert {tuple(inputs.shape) for inputs, _ in batches} == {(assembly.WINDOWS, assembly.TOKENS)}
    first = data.train.tokens[plan.indices(0)[0] * 64 :][: assembly.TOKENS + 1].tolist()
    assert batches[0][0][0].tolist() == first[:-1] and batches[0][1][0].tolist() == first[1:]


@pytest.mark.parametrize(("setting", "named"), [
    ("model.layers=3", "model.layers was 2 and is now 3"), ("run.updates=13", "run.updates was 12 and is now 13"),
    ("optimizer.beta2=0.9", "optimizer.beta2 was 0.95 and is now 0.9"),
])  # fmt: skip
def test_another_recipe_is_refused_and_the_first_difference_named(
    setting: str, named: str, data: PreparedData, tmp_path: Path
) -> None:
    train(data, tmp_path / "run", small_recipe())
    before = (tmp_path / "run" / "log.jsonl").read_bytes()
    with pytest.raises(UsageError, match=named):
        train(data, tmp_path / "run", small_recipe(setting))
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == before


def test_other_data_are_refused_and_settings_that_change_no_number_are_not(
    data: PreparedData, tmp_path: Path, said: list[str]
) -> None:
    train(data, tmp_path / "run", small_recipe())
    other = dataclasses.replace(data, manifest={**data.manifest, "fingerprint": "xyz"})
    with pytest.raises(UsageError, match=r"fingerprint was abc, and that of .* is xyz"):
        train(other, tmp_path / "run", small_recipe())
    train(data, tmp_path / "run", small_recipe("run.keep=1", "run.save_every=5", "run.check=true"))
    assert said[-1] == "All 12 updates are done."


def test_restart_begins_anew_and_leaves_other_files_alone(data: PreparedData, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(data, run, small_recipe())
    (run / "notes.txt").write_text("mine")
    train(data, run, small_recipe("run.updates=3"), resume=False)
    assert [line["update"] for line in lines(run)] == [2, 3]
    assert (run / "notes.txt").read_text() == "mine"
    assert open_run(run, "last").step == 3


def test_a_folder_with_other_things_is_refused(data: PreparedData, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"contains thesis\.tex"):
        train(data, tmp_path, small_recipe())
    with pytest.raises(UsageError, match=r"contains thesis\.tex"):
        train(data, tmp_path, small_recipe(), resume=False)
    with pytest.raises(UsageError, match="--resume needs an existing run"):
        train(data, tmp_path / "none", small_recipe(), resume=True)


def test_two_trainings_in_one_folder_are_refused(data: PreparedData, tmp_path: Path) -> None:
    with claimed(tmp_path / "run"), pytest.raises(UsageError, match="Another process is training"):
        train(data, tmp_path / "run", small_recipe())


@pytest.mark.parametrize(("setting", "said_of_it"), [
    ("model.context=100000", "must hold a window"), ("schedule.warmup_updates=12", "warmup_updates"),
    ("model.vocabulary_size=99", "tokenizer, 300"),
])  # fmt: skip
def test_what_does_not_fit_the_data_is_refused(
    setting: str, said_of_it: str, data: PreparedData, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said_of_it):
        train(data, tmp_path / "run", small_recipe(setting))


def test_a_loss_that_is_no_number_ends_the_training_and_replaces_no_checkpoint(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(training: Any, update: int) -> Any:
        nats, weight, norm = take_update(training, update)
        return (nats * float("nan") if update == 4 else nats), weight, norm

    monkeypatch.setattr(training_module, "take_update", broken)
    with pytest.raises(TrainwrightError, match="The loss or a gradient is nan"):
        train(data, tmp_path / "run", small_recipe())
    assert open_run(tmp_path / "run", "last").step == 4


def test_epochs_become_updates(data: PreparedData, tmp_path: Path) -> None:
    windows = len(Windows(data.train, 64, limit=60))
    outcome = train(
        data, tmp_path / "run", small_recipe("run.updates=0", "run.epochs=2.0", "model.context=64", "data.limit=60")
    )
    assert (windows, outcome.of) == (60, 15)


def test_prompts_are_completed_on_the_way(data: PreparedData, tmp_path: Path, said: list[str]) -> None:
    with_samples = small_recipe("run.sample_every=6", 'run.prompts=["def ", "im"]')
    train(data, tmp_path / "run", with_samples)
    train(data, tmp_path / "without", small_recipe())
    samples = lines(tmp_path / "run", "samples")
    assert [line["update"] for line in samples] == [6, 12]
    assert list(samples[0]["texts"]) == ["def ", "im"]
    assert any(text.startswith("  def ") for text in said)
    assert largest_difference(weights(tmp_path / "run"), weights(tmp_path / "without")) == 0


def test_a_training_in_bf16_keeps_its_weights_in_fp32(data: PreparedData, tmp_path: Path) -> None:
    train(data, tmp_path / "bf16", small_recipe("run.precision=bf16"))
    train(data, tmp_path / "fp32", small_recipe())
    losses = [lines(tmp_path / name)[-1]["loss"] for name in ("bf16", "fp32")]
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], abs=0.05)
    assert {t.dtype for t in weights(tmp_path / "bf16").values()} == {torch.float32}


def test_data_that_are_gone_over_too_often_are_said_to_be(data: PreparedData, tmp_path: Path, said: list[str]) -> None:
    train(data, tmp_path / "run", small_recipe("run.updates=40", "data.limit=16"))
    (told,) = [text for text in said if "memorized" in text]
    assert told.startswith("40 updates go over the 16 windows 20 times") and "--set run.updates=32" in told
    said.clear()
    train(data, tmp_path / "other", small_recipe("run.updates=32", "data.limit=16"))
    assert not [text for text in said if "memorized" in text]


# The command


def command(data: PreparedData, *more: str) -> list[str]:
    given_settings = [word for setting in SMALL for word in ("--set", setting)]
    return [
        sys.executable,
        "-m",
        "trainwright",
        "lm",
        "train",
        str(data.folder),
        "--out",
        "run",
        *given_settings,
        *more,
    ]


def test_ctrl_c_saves_and_says_how_to_go_on(data: PreparedData, tmp_path: Path) -> None:
    long = ("--set", "run.updates=5000", "--set", "run.save_every=0", "--set", "run.evaluate_every=0")
    process = subprocess.Popen(
        command(data, *long), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (tmp_path / "run" / "log.jsonl").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate()
    assert process.returncode == 130, error
    assert "Run the same command again to resume" in out
    step = open_run(tmp_path / "run", "last").step
    assert 0 < step < 5000 and out.startswith(f"{step} of 5000 updates")


@pytest.mark.slow
def test_a_run_that_lies_there_goes_on_with_its_own_recipe(data: PreparedData, tmp_path: Path) -> None:
    train(data, tmp_path / "run", small_recipe())
    words = [sys.executable, "-m", "trainwright", "lm", "train", str(data.folder), "--out", "run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "All 12 updates are done." in done.stderr, done.stderr
    assert "12 of 12 updates" in done.stdout
    refused = subprocess.run([*words, "--preset", "small"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2 and "model.layers was 2 and is now 8" in " ".join(refused.stderr.split())


# Sinks


@pytest.mark.slow
def test_tensorboard_gets_the_numbers_of_the_log(data: PreparedData, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(data, tmp_path / "run", small_recipe('run.sinks=["tensorboard"]'))
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    shown = [(e.step, e.value) for e in events.Scalars("train/loss")]
    logged = [(line["update"], line["loss"]) for line in lines(tmp_path / "run")]
    assert [s for s, _ in shown] == [s for s, _ in logged]
    assert [v for _, v in shown] == pytest.approx([v for _, v in logged])
    assert [e.step for e in events.Scalars("evaluation/loss")] == [4, 8, 12]


class StandIn(SimpleNamespace):
    """A tracker's module."""

    def __init__(self) -> None:
        self.began: list[dict[str, Any]] = []
        self.logged: list[tuple[dict[str, float], int]] = []
        self.finished = 0

    def init(self, **named: Any) -> None:
        self.began.append(named)

    def log(self, values: dict[str, float], step: int) -> None:
        self.logged.append((values, step))

    def finish(self) -> None:
        self.finished += 1


def test_wandb_goes_on_with_a_run_that_goes_on(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = StandIn()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(logs, "check_sinks", lambda names: None)
    with_wandb = small_recipe('run.sinks=["wandb"]')
    for _ in range(2):
        train(data, tmp_path / "run", with_wandb)
    assert wandb.began[0]["id"] == wandb.began[1]["id"] and wandb.began[0]["resume"] == "allow"
    assert wandb.began[0]["config"]["model"]["width"] == 32
    assert [step for values, step in wandb.logged if "train/loss" in values] == [2, 4, 6, 8, 10, 12]
    assert wandb.finished == 2
    train(data, tmp_path / "run", with_wandb, resume=False)
    assert wandb.began[2]["id"] != wandb.began[0]["id"]


@pytest.mark.slow
def test_trackio_gets_the_numbers_of_the_log_without_a_network(data: PreparedData, tmp_path: Path) -> None:
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    words = command(data, "--set", 'run.sinks=["trackio"]')
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "trackio" / "trainwright-lm.db") as base:
        rows = [
            (step, json.loads(values)) for step, values in base.execute("select step, metrics from metrics order by id")
        ]
    shown = [(step, values["train/loss"]) for step, values in rows if "train/loss" in values]
    assert shown == [(line["update"], line["loss"]) for line in lines(tmp_path / "run")]


def test_a_sink_whose_package_is_missing_is_refused_before_the_training(data: PreparedData, tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install wandb"):
        train(data, tmp_path / "run", small_recipe('run.sinks=["wandb"]'))
    assert not (tmp_path / "run").exists()


def test_a_log_is_cut_where_its_last_line_was_not_finished(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    whole = "".join(json.dumps({"kind": "train", "update": n, "loss": n / 3}) + "\n" for n in (1, 2, 3))
    file.write_text(whole + '{"kind": "train", "update": 4')
    logs.cut(file, 9)
    assert file.read_text() == whole
    logs.cut(file, 2)
    assert [json.loads(line)["update"] for line in file.read_text().splitlines()] == [1, 2]
    logs.cut(tmp_path / "none", 2)


def test_durations_are_read_at_a_glance() -> None:
    assert [duration(s) for s in (0, 59.6, 61, 3723)] == ["0:00", "1:00", "1:01", "1:02:03"]


def test_weights_made_by_an_infinite_gradient_are_not_saved(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss before them is finite."""
    clipped = training_module.clip_gradients
    updates = iter(range(100))

    def clipped_late(training: Any) -> torch.Tensor:
        if next(updates) == 3:
            next(training.model.parameters()).grad.fill_(torch.inf)
        return clipped(training)

    monkeypatch.setattr(training_module, "clip_gradients", clipped_late)
    with pytest.raises(TrainwrightError, match="diverged"):
        train(data, tmp_path, small_recipe("run.save_every=2", "run.log_every=100", "run.evaluate_every=0"))
    assert all(torch.isfinite(tensor).all() for tensor in weights(tmp_path).values())
    assert open_run(tmp_path, "last").step == 2


def test_a_gpu_that_is_too_small_is_told_what_to_lower(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore")

    monkeypatch.setattr(training_module, "take_update", lacks)
    with pytest.raises(TrainwrightError, match=r"does not suffice for 4 windows at a time. Lower data.micro_windows"):
        train(data, tmp_path, small_recipe("data.windows=4"))
    monkeypatch.undo()
    train(data, tmp_path, small_recipe("data.windows=4", "data.micro_windows=2"))


def test_a_resume_with_other_parts_says_that_digits_change(data: PreparedData, tmp_path: Path, said: list[str]) -> None:
    recipe = small_recipe("data.windows=4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_module, "due", lambda every, done: done == 2 or 1 / (done < 3))
        with pytest.raises(ZeroDivisionError):
            train(data, tmp_path, recipe)
    train(data, tmp_path, small_recipe("data.windows=4", "data.micro_windows=2"))
    assert "No longer bit for bit the same from here on: data.micro_windows changes from 0 to 2." in said
