"""Rows that user code cannot make one tensor of are seen where that happens."""

import numpy as np
import pytest
import torch

from trainwright.seams.torch.stacking import lengths_of, watching_stacks
from trainwright.tensors.torch import objects as tensors

ROWS = ([1, 2, 3], [4])
NOT_RAGGED = ([[1, 2], [3, 4]], [torch.ones(2), "text"], [torch.ones(2, 3), torch.ones(3, 4)], 5, [])
STACKS = {
    "a tensor of lists": lambda: torch.tensor(list(ROWS)),
    "a tensor of arrays": lambda: torch.tensor([np.array(r) for r in ROWS]),
    "a stack": lambda: torch.stack([torch.tensor(r) for r in ROWS]),
    "rows above one another": lambda: torch.cat([torch.tensor([r]) for r in ROWS]),
    "an array": lambda: torch.from_numpy(np.array(list(ROWS))),
    "a stack of arrays": lambda: torch.from_numpy(np.stack([np.array(r) for r in ROWS])),
}


@pytest.mark.parametrize("made", STACKS.values(), ids=STACKS.keys())
def test_rows_are_seen_where_they_are_stacked(made) -> None:
    seen = []
    with watching_stacks(lambda rows: seen.append(lengths_of(rows))), pytest.raises((ValueError, RuntimeError)):
        made()
    assert seen == [(3, 1)]
    with pytest.raises((ValueError, RuntimeError)):
        made()


@pytest.mark.parametrize("rows", NOT_RAGGED)
def test_only_rows_that_differ_along_one_axis_have_lengths(rows) -> None:
    assert len(set(lengths_of(rows))) <= 1


def test_vectors_are_padded_with_vectors() -> None:
    rows = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]
    assert tensors.padded(rows) == [[[1.0, 2.0], [0.0, 0.0]], rows[1]]
    padded = tensors.padded([torch.ones(2, 1), torch.ones(2, 3)])
    assert [tuple(p.shape) for p in padded] == [(2, 3), (2, 3)]
