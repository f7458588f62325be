"""Trainings under torchrun: other numbers of processes, two nodes, no common disk, a process that is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lm_material import SMALL, small_recipe, write_data
from trainwright_lm.runs.checkpoint import SHARDS, step_folder, steps
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.prepared import open_data
from trainwright_lm.training.train import train

pytestmark = pytest.mark.xdist_group("processes")

TESTS = Path(__file__).parent
ADAMW = ("optimizer.name=adamw", "optimizer.learning_rate=5e-4")
FSDP = "run.distributed=fsdp"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def one(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process trains."""
    out = tmp_path_factory.mktemp("one") / "run"
    train(open_data(data), out, small_recipe(*ADAMW))
    return out


@pytest.fixture(scope="module")
def half(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What two processes left when the second was killed before update 7, in shards; and what was said."""
    out = tmp_path_factory.mktemp("half") / "run"
    # torchrun looks every three seconds, so that the first process can say it before torchrun ends it.
    status, said = torchrun(words(data, out, FSDP), 2, "--monitor-interval", "3", KILLED="1:7")
    assert status == 1, said
    return out, said


def words(data: Path, out: Path | str, *settings: str) -> list[str]:
    sets = [word for one in (*SMALL, *ADAMW, *settings) for word in ("--set", one)]
    return ["lm", "train", str(data), "--out", str(out), *sets]


def begin(given: list[str], *launcher: str, **more: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, str(TESTS / "helpers" / "lm_rank.py"), *given]
    pipe, out = subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=out, text=True, start_new_session=True)


def end(begun: subprocess.Popen[str]) -> None:
    """With all processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(begun.pid, signal.SIGKILL)


def torchrun(given: list[str], count: int = 2, *launcher: str, **more: str) -> tuple[int, str]:
    begun = begin(given, "--standalone", "--nproc_per_node", str(count), *launcher, **more)
    try:
        said, _ = begun.communicate(timeout=200)
    finally:
        end(begun)
    return begun.returncode, said


def assert_equal(run: Path, one: Path) -> None:
    ours, theirs = (open_run(folder, "last").model.state_dict() for folder in (run, one))
    assert max((ours[k] - theirs[k]).abs().max().item() for k in theirs) < 1e-6
    assert steps(run / "checkpoints")[-1] == 12


def test_a_killed_process_ends_all_with_one_message_and_one_goes_on(
    half: tuple[Path, str], data: Path, one: Path, tmp_path: Path
) -> None:
    left, said = half
    assert said.count("trainwright: ") == 1 and "Process 0 of 2 lost another one (" in said
    assert said.count("Traceback (most recent call last)") == 1  # torchrun's own
    assert "Signal 9 (SIGKILL)" in said
    assert (step_folder(left / "checkpoints", 6) / SHARDS).is_dir()
    run = Path(shutil.copytree(left, tmp_path / "run"))
    train(open_data(data), run, small_recipe(*ADAMW))
    assert_equal(run, one)


@pytest.mark.slow
def test_four_go_on_where_two_were(half: tuple[Path, str], data: Path, one: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(half[0], tmp_path / "run"))
    status, said = torchrun(words(data, run, FSDP), 4)
    assert status == 0 and "processes change from 2 to 4" in said, said
    assert_equal(run, one)
    assert len(list(step_folder(run / "checkpoints", 12).rglob("*.safetensors"))) == 4


@pytest.mark.slow
def test_four_train_what_one_does_and_torchrun_begins_a_killed_one_anew(data: Path, one: Path, tmp_path: Path) -> None:
    status, said = torchrun(words(data, tmp_path / "run"), 4, "--max-restarts", "1", KILLED="3:7")
    assert status == 0 and "Resuming after update 6" in said, said
    assert_equal(tmp_path / "run", one)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["ddp", "fsdp"])
def test_two_nodes_train_what_one_process_does(layout: str, data: Path, one: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = words(data, tmp_path / "run", f"run.distributed={layout}")
    meeting = f"--nnodes 2 --nproc_per_node 1 --master-addr 127.0.0.1 --master-port {port} --node-rank".split()
    nodes = [begin(given, *meeting, number) for number in "01"]
    try:
        said = [node.communicate(timeout=200)[0] for node in nodes]
    finally:
        for node in nodes:
            end(node)
    assert [node.returncode for node in nodes] == [0, 0], said
    assert_equal(tmp_path / "run", one)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["ddp", "fsdp"])
def test_compiled_layers_train_the_same(layout: str, data: Path, one: Path, tmp_path: Path) -> None:
    given = words(data, tmp_path / "run", f"run.distributed={layout}", "run.compile=true", "run.precision=fp32")
    status, said = torchrun(given)
    assert status == 0 and "Layers and loss compiled" in said, said
    ours, theirs = (open_run(folder, "last").model.state_dict() for folder in (tmp_path / "run", one))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["ddp", "fsdp"])
def test_a_folder_that_the_machines_do_not_share_is_refused(layout: str, data: Path, tmp_path: Path) -> None:
    given = words(data, tmp_path / "own-{rank}", f"run.distributed={layout}")
    status, said = torchrun(given, SEEN_WITHIN="1")
    assert status == 1 and said.count("trainwright: ") == 1 and "run.common_disk=false" in said, said


@pytest.mark.slow
def test_a_process_that_never_comes_is_no_internal_error(data: Path, tmp_path: Path) -> None:
    """The second one has no data and ends before they have met."""
    shutil.copytree(data, tmp_path / "data-0")
    status, said = torchrun(words(tmp_path / "data-{rank}", tmp_path / "run"))
    assert status == 1 and "data-1" in said and "internal error" not in said, said
    assert not (tmp_path / "run" / "recipe.json").exists()


@pytest.mark.slow
def test_machines_without_a_common_disk(data: Path, one: Path, tmp_path: Path) -> None:
    """The data are on each, the run on the first alone, which also knows the recipe alone."""
    for rank in "01":
        shutil.copytree(data, tmp_path / f"data-{rank}")
    apart = words(tmp_path / "data-{rank}", tmp_path / "run-{rank}", FSDP, "run.common_disk=false")
    assert torchrun(apart, KILLED="0:7")[0] == 1
    shutil.move(tmp_path / "run-0", tmp_path / "run-1")  # as if the machines had changed places
    status, said = torchrun(apart)
    assert status == 1 and said.count("another one has a later checkpoint") == 1, said
    shutil.rmtree(tmp_path / "run-0", ignore_errors=True)
    shutil.move(tmp_path / "run-1", tmp_path / "run-0")
    assert not (tmp_path / "run-1").exists() and steps(tmp_path / "run-0" / "checkpoints")[-1] == 6
    status, said = torchrun(apart[:5])
    assert status == 0, said
    assert_equal(tmp_path / "run-0", one)
    assert not (tmp_path / "run-1").exists()
    (tmp_path / "data-1" / "data.json").write_text((data / "data.json").read_text().replace("abc", "abd"))
    status, said = torchrun(apart[:5])
    assert status == 1 and said.count("fingerprints differ") == 1, said


def test_shards_are_read_whole(half: tuple[Path, str]) -> None:
    opened = open_run(half[0], "6")
    assert all(torch.isfinite(tensor).all() for tensor in opened.model.state_dict().values())
