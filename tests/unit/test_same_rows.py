"""assert_same_rows: which rows two data sets or loaders do not share."""

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from trainwright.errors import UsageError
from trainwright.same_rows import assert_same_rows

X = torch.arange(400, dtype=torch.float32).reshape(100, 4) / 8
Y = torch.arange(100) % 3
ROWS = TensorDataset(X, Y)


def differ(first, second, **options):
    """What is said of two sets whose rows differ."""
    with pytest.raises(AssertionError) as raised:
        assert_same_rows(first, second, **options)
    return str(raised.value)


class Streamed(IterableDataset):
    """Gives all rows in each worker, as a stream does whose author forgot the workers."""

    def __iter__(self):
        return iter(ROWS)


class Words(Dataset):
    def __init__(self, *texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, row):
        return {"text": self.texts[row], "label": row % 2, "box": {"at": torch.full((2,), row)}}


def test_rows_are_the_same_whatever_draws_them():
    assert_same_rows(ROWS, DataLoader(ROWS, batch_size=7, shuffle=True))
    assert_same_rows(ROWS, [(x.numpy().astype(np.float64), int(y)) for x, y in ROWS], ordered=True)
    assert_same_rows(TensorDataset(X.bfloat16()), ((x.bfloat16().float(),) for x in X))
    assert_same_rows(DataLoader(Streamed(), batch_size=9), ROWS, ordered=True)


def test_equal_numbers_of_other_types_are_the_same():
    assert_same_rows([(np.uint8([0, 2]), True)], [([-0.0, 2.0], 1)])
    assert "1 missing" in differ([(2**60,)], [(2**60 + 1,)])


def test_missing_and_doubled_rows_are_counted():
    told = differ(ROWS, DataLoader(ROWS, batch_size=7, drop_last=True))
    assert told.splitlines()[:3] == [
        "the rows differ: first has 100, second 98",
        "2 missing from second:",
        "  row 98: 0 [49, 49.12, 49.25, 49.38, …] of shape (4,); label 2",
    ]
    told = differ(ROWS, Subset(ROWS, [*range(99), 5]))
    assert "1 missing from second:\n  row 99" in told and "1 in second only:\n  row 99: 0 [2.5, " in told
    told = differ(ROWS, DataLoader(Streamed(), batch_size=10, num_workers=2))
    assert "second 200" in told and "100 in second only:" in told and "  and 97 more" in told


def test_other_labels_are_told_apart_from_other_rows():
    told = differ(ROWS, TensorDataset(X, torch.where(torch.arange(100) == 4, 2, Y)))
    assert told.splitlines()[1:] == [
        "1 with another label:",
        "  row 4: 0 [2, 2.125, 2.25, 2.375, …] of shape (4,); label 1 in first, 2 in second",
    ]


def test_each_other_label_of_equal_rows_is_told():
    told = differ([("a", 0), ("a", 1)], [("a", 2), ("a", 3)])
    assert "label 0 in first, 2 in second" in told and "label 1 in first, 3 in second" in told


def test_order_counts_where_it_is_asked_for():
    turned = Subset(ROWS, [1, 0, *range(2, 100)])
    assert_same_rows(ROWS, turned)
    assert "2 in another place:\n  row 0: " in differ(ROWS, turned, ordered=True)


def test_texts_and_nested_parts_are_rows():
    assert_same_rows(Words("a", "b"), [Words("a", "b")[1], Words("a", "b")[0]])
    assert "row 1: text 'b'; label 1" in differ(Words("a", "b"), Words("a", "b "))
    assert "missing" in differ(Words("a"), [{**Words("a")[0], "box": {"at": torch.ones(2)}}])


def test_a_shape_is_part_of_a_row():
    assert "100 missing" in differ(ROWS, TensorDataset(X[:, None], Y))


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="most_rows=50"):
        assert_same_rows(ROWS, ROWS, most_rows=50)
    with pytest.raises(UsageError, match="no rows"):
        assert_same_rows([], iter(()))
    table = {"x": [1, 2], "y": [3, 4]}
    for columns in (table, pandas.DataFrame(table)):
        with pytest.raises(UsageError, match="got columns"):
            assert_same_rows(columns, columns)


@pytest.mark.parametrize("collate", [list, lambda rows: list(zip(*rows)), lambda rows: ({"x": rows}, rows)])
def test_a_batch_whose_rows_cannot_be_told_is_refused(collate):
    with pytest.raises(UsageError, match="as many rows"):
        assert_same_rows(ROWS, DataLoader(ROWS, batch_size=2, collate_fn=collate))


@pytest.mark.parametrize(
    "rows",
    [
        ["a", "bc", "def"],
        [("a", "b"), ("c", "d")],
        [([1, 2], 3), ([4, 5], 6)],
        [([[1, 2], [3, 4]], 0), ([[5, 6], [7, 8]], 1)],
        [((x, x + 1), y) for x, y in ROWS][:6],
        [{"ids": [1, 2], "of": {"text": "a"}}, {"ids": [3, 4], "of": {"text": "b"}}],
    ],
)
def test_batches_of_torch_are_taken_apart_at_every_depth(rows):
    assert_same_rows(rows, DataLoader(rows, batch_size=2), ordered=True)
    assert "1 in second only" in differ(rows, DataLoader([*rows, rows[0]], batch_size=2))


def test_a_batch_of_columns_that_the_user_makes_is_taken_apart():
    own = DataLoader(ROWS, batch_size=8, collate_fn=lambda rows: [torch.stack(part) for part in zip(*rows)])
    assert_same_rows(ROWS, own, ordered=True)
    assert_same_rows(ROWS, DataLoader(ROWS, batch_size=8, collate_fn=lambda rows: tuple(zip(*rows))), ordered=True)


def test_a_stream_that_knows_its_length_is_drawn():
    class Known(Streamed):
        def __len__(self):
            return len(ROWS)

    assert_same_rows(Known(), ROWS, ordered=True)
