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
from trainwright.lm import checkpoint as checkpoints
from trainwright.lm.checkpoint import MODEL, OPTIMIZER, STATE, State, load, prune, save, step_folder, steps
from trainwright.lm.config import as_tables
from trainwright.lm.data import open_data
from trainwright.lm.model import Transformer
from trainwright.lm.runs import create_run, open_run, read_recipe
from trainwright.lm.train import train

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


@pytest.mark.parametrize("word", ["save_file", "fsync", "rename"])
def test_a_training_killed_while_it_saves_goes_on(word: str, data: Path, forks: Forks, unharmed: tuple[Path, int],
                                                  tmp_path: Path) -> None:  # fmt: skip
    """The events of the first save follow each other; the third update is event 2 or so after its beginning."""
    out = tmp_path / "run"
    first = next(n for n in range(4, 40) if _unfinished_after(forks, data, tmp_path / f"try{n}", n))
    for offset in {"save_file": (0,), "fsync": (2,), "rename": (5,)}[word]:
        forks.train(data, out, [DROPOUT], kill_at=first + offset)
    assert forks.train(data, out, [DROPOUT])["status"] == 0
    assert_same(out, unharmed[0])


def _unfinished_after(forks: Forks, data: Path, out: Path, event: int) -> bool:
    forks.train(data, out, [DROPOUT], kill_at=event)
    return bool(list((out / "checkpoints").glob(".unfinished*")))
