"""The number of rounds of a loop, from its header."""

import ast

import numpy as np
import pytest
from torch.utils.data import DataLoader, SequentialSampler

from trainwright.seams.loops.lengths import count_of


def minibatches(rows, size):
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def passed_on(items):
    yield from items


ROWS = list(range(100))
SCOPE = {
    "rows": ROWS,
    "array": np.zeros((100, 3)),
    "loader": DataLoader(ROWS, batch_size=32),
    "DataLoader": DataLoader,
    "some": SequentialSampler(ROWS[:64]),
    "minibatches": minibatches,
    "passed_on": passed_on,
    "size": 32,
}


@pytest.mark.parametrize(
    ("header", "rounds"),
    [
        ("DataLoader(rows, batch_size=size, shuffle=True)", 4),
        ("DataLoader(rows, 32)", 4),
        ("DataLoader(rows, batch_size=32, drop_last=True)", 3),
        ("DataLoader(rows, batch_size=32, sampler=some)", 2),
        ("DataLoader(rows, batch_sampler=[[1, 2], [3]])", 2),
        ("DataLoader(rows)", 100),
        ("enumerate(DataLoader(rows, batch_size=32))", 4),
        ("minibatches(array, batch_size=32)", 4),
        ("minibatches(array, 32)", None),
        ("passed_on(loader)", 4),
        ("passed_on(rows)", 100),
        ("range(0, len(rows), size)", 4),
    ],
)
def test_rounds_of_a_header(header: str, rounds: int | None) -> None:
    loop = ast.parse(f"for x in {header}:\n    pass").body[0]
    assert count_of(loop, SCOPE) == rounds
