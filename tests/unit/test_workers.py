"""What spawned workers cannot get, and that looking for it leaves everything as it was."""

import functools
import multiprocessing
import sys
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate

from trainwright.seams.torch.workers import spawned_workers, workers_of_loader

SPAWN = multiprocessing.get_context("spawn")


class Rows(torch.utils.data.Dataset):
    def __init__(self, **parts):
        vars(self).update(x=torch.randn(8, 2), names=np.asarray(["a"]), **parts)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, row):
        return self.x[row]


def seen(data, **arguments):
    return workers_of_loader(DataLoader(data, num_workers=2, multiprocessing_context="spawn", **arguments))


@pytest.mark.parametrize(
    ("data", "arguments", "part", "is_code"),
    [
        (Rows(), {"collate_fn": lambda rows: rows}, "collate_fn", True),
        (Rows(), {"worker_init_fn": functools.partial(lambda number: None)}, "worker_init_fn.func", True),
        (Subset(Rows(steps=[str, lambda x: x]), [0]), {}, "dataset.dataset.steps[1]", True),
        (Rows(lock=threading.Lock()), {}, "dataset.lock", False),
        (Rows(files={"log": sys.stdout}), {}, "dataset.files['log']", False),
    ],
)
def test_the_innermost_part_that_cannot_be_pickled_is_named(data, arguments, part, is_code):
    found = seen(data, **arguments)
    assert (found.part, found.is_code, found.method, found.count) == (part, is_code, "spawn", 2) and found.error


@pytest.mark.parametrize(
    "data", [Rows(), Rows(lock=SPAWN.Lock(), queue=SPAWN.Queue()), TensorDataset(torch.ones(3, 2))]
)
def test_what_multiprocessing_can_send_is_no_fault(data):
    assert seen(data, collate_fn=default_collate) is None


@pytest.mark.parametrize("arguments", [{"num_workers": 0}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_without_new_processes_nothing_is_pickled(arguments):
    assert workers_of_loader(DataLoader(Rows(), collate_fn=lambda rows: rows, **arguments)) is None


def test_looking_shares_no_memory_and_fixes_no_start_method():
    data, before = Rows(), multiprocessing.get_start_method(allow_none=True)
    assert seen(data) is None and not data.x.is_shared()
    spawned_workers(1, None, {"dataset": data})
    assert multiprocessing.get_start_method(allow_none=True) == before
