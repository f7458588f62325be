"""Checkpoints: whole or not there; killed trainings end as if they had not been killed; what is wrong is refused."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_forks import Forks
from lm_material import SMALL, small_recipe, small_tokenizer, write_data
from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.config import as_tables
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs.checkpoint import MODEL, OPTIMIZER, STATE, State, load, prune, save, step_folder, steps
from trainwright_lm.runs.folder import create_run, open_run, read_recipe
from trainwright_lm.tokens.prepared import open_data
from trainwright_lm.training.train import train

DROPOUT = "model.dropout=0.1"  # so that random numbers count, too


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@pytest.fixture(scope="module")
def unharmed(data: Path, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A run that nothing happened to, and how many events it had."""
    out = tmp_path_factory.mktemp("unharmed") / "run"
    told = forks.train(data, out, [DROPOUT])
    assert told["status"] == 0
    return out, told["events"]


@pytest.fixture
def run(unharmed: tuple[Path, int], tmp_path: Path) -> Path:
    """A copy of that run."""
    return Path(shutil.copytree(unharmed[0], tmp_path / "run"))


def logged(run: Path) -> list[dict]:
    """The log without what clocks say."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")} for line in lines]


def assert_same(run: Path, other: Path) -> None:
    """Same weights, optimizer and log, bit for bit, at every checkpoint that both have."""
    ours, theirs = run / "checkpoints", other / "checkpoints"
    assert steps(ours)[-1] == steps(theirs)[-1]
    for step in set(steps(ours)) & set(steps(theirs)):
        for name in (MODEL, OPTIMIZER):
            assert (step_folder(ours, step) / name).read_bytes() == (step_folder(theirs, step) / name).read_bytes()
    assert logged(run) == logged(other)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(kills=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=2))
def test_a_training_killed_anywhere_ends_as_if_it_had_not_been(
    kills: list[float], data: Path, forks: Forks, unharmed: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("killed") / "run"
    for kill in kills:
        told = forks.train(data, out, [DROPOUT], kill_at=int(kill * unharmed[1]))
        assert told["status"] in (-signal.SIGKILL, 0)  # 0: what was left had no such event
    assert forks.train(data, out, [DROPOUT])["status"] == 0
    assert_same(out, unharmed[0])
    assert not list((out / "checkpoints").glob(".unfinished*"))


def test_a_training_killed_at_each_event_of_a_save_goes_on(data: Path, forks: Forks, unharmed: tuple[Path, int],
                                                           tmp_path: Path) -> None:  # fmt: skip
    out, saving = tmp_path / "run", set()
    for event in range(10, 28):  # of the first save, then of the second
        forks.train(data, out, [DROPOUT], kill_at=event)
        saving.update(p.name for p in (out / "checkpoints").glob(".unfinished*"))
    assert forks.train(data, out, [DROPOUT])["status"] == 0
    assert len(saving) > 1
    assert_same(out, unharmed[0])


@pytest.mark.slow
def test_kill_9_from_outside_loses_only_what_was_not_saved(data: Path, tmp_path: Path) -> None:
    """The command itself, killed when its log has so many lines."""
    command = [sys.executable, "-m", "trainwright", "lm", "train", str(data), "--out", "run"]
    command += [word for setting in (*SMALL, DROPOUT) for word in ("--set", setting)]
    for folder, kills in (("killed", (2, 5)), ("not", ())):
        (tmp_path / folder).mkdir()
        for lines in kills:
            process = subprocess.Popen(command, cwd=tmp_path / folder, stderr=subprocess.DEVNULL)
            log = tmp_path / folder / "run" / "log.jsonl"
            while process.poll() is None and not (log.exists() and len(log.read_bytes().splitlines()) >= lines):
                time.sleep(0.001)
            process.kill()
            process.wait()
        done = subprocess.run(command, cwd=tmp_path / folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "12 of 12 updates" in done.stdout
    assert_same(tmp_path / "killed" / "run", tmp_path / "not" / "run")


def test_a_full_disk_ends_in_a_clear_error_and_loses_nothing_saved(data: Path, forks: Forks, tmp_path: Path,
                                                                  unharmed: tuple[Path, int]) -> None:  # fmt: skip
    out = tmp_path / "run"
    short = [DROPOUT]
    forks.train(data, out, short, kill_at=40)
    there = steps(out / "checkpoints")
    size = (step_folder(out / "checkpoints", there[-1]) / OPTIMIZER).stat().st_size
    told = forks.train(data, out, short, file_bytes=size // 2)
    assert told["status"] == 2
    assert told["said"][-1].startswith("WriteError: The checkpoint of update")
    assert f"most recently of update {there[-1]}" in told["said"][-1]
    assert steps(out / "checkpoints") == there
    assert not list((out / "checkpoints").glob(".unfinished*"))
    assert forks.train(data, out, short)["status"] == 0
    assert_same(out, unharmed[0])


def test_a_log_that_cannot_be_written_to_ends_in_a_clear_error(data: Path, forks: Forks, tmp_path: Path) -> None:
    told = forks.train(data, tmp_path / "run", ["run.save_every=0", "run.evaluate_every=0"], file_bytes=0)
    assert told["status"] == 2 and "WriteError" in told["said"][-1]


def damage(folder: Path, how: str) -> None:
    model, state = folder / MODEL, folder / STATE
    if how == "truncated":
        model.write_bytes(model.read_bytes()[:-9])
    elif how == "one bit":
        held = bytearray(model.read_bytes())
        held[-1] ^= 1
        model.write_bytes(held)
    elif how == "missing":
        model.unlink()
    elif how == "no state":
        state.unlink()
    elif how == "state cut":
        state.write_text(state.read_text()[:50])
    elif how == "state altered":
        state.write_text(state.read_text().replace('"update": 12', '"update": 13'))
    elif how == "foreign":
        state.write_text('{"epoch": 3}')
    elif how == "later version":
        state.write_text(json.dumps({**json.loads(state.read_text()), "version": 9}))


DAMAGES = {
    "truncated": "bytes long", "one bit": "checksum", "missing": "is missing", "no state": "No such file",
    "state cut": "must be a checkpoint's state", "state altered": "checksum", "foreign": "is not the state of",
    "later version": "version 9",
}  # fmt: skip


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_refused_with_the_reason(how: str, run: Path) -> None:
    folder = step_folder(run / "checkpoints", 12)
    damage(folder, how)
    with pytest.raises(ReadError, match=DAMAGES[how]):
        load(folder)
    with pytest.raises(ReadError, match=DAMAGES[how]):
        open_run(run, "last")


def test_a_run_goes_on_from_the_newest_whole_checkpoint_and_says_so(
    run: Path, data: Path, forks: Forks, unharmed: tuple[Path, int]
) -> None:
    damage(step_folder(run / "checkpoints", 12), "truncated")
    damage(step_folder(run / "checkpoints", 9), "missing")
    told = forks.train(data, run, [DROPOUT])
    assert told["status"] == 0
    assert "bytes long" in told["said"][0] and "step-00000012.refused" in told["said"][0]
    assert "is missing" in told["said"][1] and told["said"][2].startswith("Computes in")
    assert any("Resuming after update 8" in line for line in told["said"][3:])
    assert_same(run, unharmed[0])


def test_where_no_checkpoint_is_whole_nothing_is_removed(run: Path, data: Path, forks: Forks) -> None:
    there = steps(run / "checkpoints")
    for step in there:
        damage(step_folder(run / "checkpoints", step), "truncated")
    told = forks.train(data, run, [DROPOUT])
    assert told["status"] == 2 and "--restart" in told["said"][-1]
    assert steps(run / "checkpoints") == there


def test_a_checkpoint_of_another_run_is_passed_over(run: Path, data: Path, forks: Forks, tmp_path: Path) -> None:
    forks.train(data, tmp_path / "other", ["run.seed=5", "run.updates=15", DROPOUT])
    shutil.copytree(step_folder(tmp_path / "other" / "checkpoints", 15), step_folder(run / "checkpoints", 15))
    told = forks.train(data, run, [DROPOUT])
    assert "belongs to another run: run.updates was 15 and is now 12" in told["said"][0]
    assert told["said"][-1] == "All 12 updates are done."


def state(update: int, loss: float | None = None) -> State:
    return State(update=update, recipe=as_tables(small_recipe()), data="abc", validation_loss=loss)


def small_model() -> Transformer:
    recipe = small_recipe("model.vocabulary_size=300")
    return Transformer(recipe.model)


def test_pruning_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    for update in (1, 2, 3, 4, 5):
        save(tmp_path, state(update), {"w": torch.ones(2)}, {})
    (tmp_path / ".unfinished-step-00000009").mkdir()
    prune(tmp_path, keep=2, best=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"step-{n:08d}" for n in (1, 4, 5)]
    prune(tmp_path, keep=0, best=None)
    assert steps(tmp_path) == [5]


def test_a_save_that_fails_leaves_the_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, state(1), {"w": torch.ones(2)}, {})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(WriteError, match=r"No space left.*most recently of update 1"):
        save(tmp_path, state(2), {"w": torch.ones(2)}, {})
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    assert torch.equal(load(step_folder(tmp_path, 1)).model["w"], torch.ones(2))


def test_a_checkpoint_is_what_was_saved(tmp_path: Path) -> None:
    model = small_model()
    optimizer = {"a:step": torch.tensor(3.0), "a:m": torch.randn(4, 5).t()}
    before = dataclasses.replace(state(7, 2.5), open_nats=0.1 + 0.2, open_weight=3.0, versions={"torch": "2"})
    held = load(save(tmp_path, before, model.state_dict(), optimizer))
    assert held.state == before
    assert all(torch.equal(held.model[k], v) for k, v in model.state_dict().items())
    assert all(torch.equal(held.optimizer[k], v) for k, v in optimizer.items())


def test_a_run_opens_at_its_best_its_last_or_a_numbered_step(run: Path) -> None:
    losses = {line["update"]: line["loss"] for line in logged(run) if line["kind"] == "evaluation"}
    assert open_run(run).step == min(losses, key=losses.get)
    assert open_run(run, "last").step == 12
    opened = open_run(run, "4")
    assert opened.step == 4 and not opened.model.training
    assert opened.recipe.model.vocabulary_size == opened.tokenizer.vocabulary_size == 300
    with pytest.raises(ReadError, match="checkpoint 5; it has 3, 4, 6, 8, 9, 12"):
        open_run(run, "5")
    with pytest.raises(UsageError, match='"best", "last"'):
        open_run(run, "newest")


def test_folders_that_are_no_runs_are_refused(tmp_path: Path, run: Path) -> None:
    with pytest.raises(ReadError, match="is missing"):
        open_run(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match="must be a run's folder"):
        open_run(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match="a file"):
        open_run(tmp_path / "file")
    (run / "recipe.json").write_text('{"model": {"depth": 3}}')
    with pytest.raises(ReadError, match="recipe of this version"):
        open_run(run)


def test_a_run_without_a_checkpoint_says_so(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ReadError, match="has no checkpoint"):
        open_run(run)


def test_weights_of_another_shape_are_named(run: Path) -> None:
    tables = as_tables(read_recipe(run))
    tables["model"]["width"] = 64
    (run / "recipe.json").write_text(json.dumps(tables))
    with pytest.raises(ReadError, match=r"embedding\.weight must be \(300, 64\); it is \(300, 32\)"):
        open_run(run)


def test_a_model_from_elsewhere_makes_a_run_that_opens_but_does_not_go_on(tmp_path: Path, data: Path) -> None:
    recipe = small_recipe("model.vocabulary_size=300")
    model = small_model()
    create_run(tmp_path / "run", recipe, small_tokenizer(), {"fingerprint": "abc"}, model, step=3)
    opened = open_run(tmp_path / "run")
    assert opened.step == 3
    assert all(torch.equal(v, opened.model.state_dict()[k]) for k, v in model.state_dict().items())
    with pytest.raises(UsageError, match="imported without"):
        train(open_data(data), tmp_path / "run", recipe)
    with pytest.raises(UsageError, match="new or empty folder"):
        create_run(tmp_path / "run", recipe, small_tokenizer(), {}, model)
