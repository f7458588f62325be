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


def logged(items, every=10):
    for number, item in enumerate(items):
        yield item
        if number % every == 0:
            print(number)


def packed(rows, size):
    kept = []
    for row in rows:
        kept.append(row)
        if len(kept) == size:
            yield kept
            kept = []


def at_most(items, most):
    for number, item in enumerate(items):
        if number == most:
            break
        yield item


ROWS = list(range(100))
SCOPE = {
    "rows": ROWS,
    "array": np.zeros((100, 3)),
    "loader": DataLoader(ROWS, batch_size=32),
    "DataLoader": DataLoader,
    "some": SequentialSampler(ROWS[:64]),
    "minibatches": minibatches,
    "passed_on": passed_on,
    "logged": logged,
    "packed": packed,
    "at_most": at_most,
    "tqdm": enumerate,
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
        ("minibatches(rows, 32)", None),
        ("packed(rows, 32)", None),
        ("at_most(rows, 5)", None),
        ("chunked(rows, 32)", None),
        ("tqdm(logged(loader))", 4),
        ("passed_on(loader)", 4),
        ("passed_on(rows)", 100),
        ("range(0, len(rows), size)", 4),
    ],
)
def test_rounds_of_a_header(header: str, rounds: int | None) -> None:
    loop = ast.parse(f"for x in {header}:\n    pass").body[0]
    assert count_of(loop, SCOPE) == rounds


@pytest.mark.parametrize(
    ("body", "rounds"),
    [
        ("step += 1\n    if step >= most: break", None),
        ("if x >= most: break", None),
        ("with bar:\n        step += 1\n    if done(step): return", None),
        ("if loss < best:\n        worse = 0\n    else:\n        worse += 1\n    if worse > 5: break", 100),
        ("if loss < best:\n        at = x\n    if x - at > 5: break", 100),
        ("total += loss\n    if isnan(total): break", 100),
        ("step += 1\n    if step % 10 == 0: print(step)", 100),
    ],
)
def test_rounds_of_a_loop_that_may_be_left_before_its_end(body: str, rounds: int | None) -> None:
    loop = ast.parse(f"for x in range(100):\n    {body}").body[0]
    assert count_of(loop, SCOPE) == rounds
