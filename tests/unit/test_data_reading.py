"""What is read of data sets of every kind, against slow and obvious counts over their items."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset, IterableDataset
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from trainwright.adapters.data.reading import as_mapping, read_split
from trainwright.probes.splits.census import measure_split, overlap

ROWS = 700
_RANDOM = np.random.default_rng(0)
FEATURES = _RANDOM.normal(size=(ROWS, 6)).astype(np.float32)
FEATURES[[11, 650], 2] = [np.nan, np.inf]
LABELS = np.arange(ROWS) * 7 % 5
TEXTS = [f"text number {i % 400}" for i in range(ROWS)]


class Items(torch.utils.data.Dataset):
    """A data set of the user's own."""

    def __init__(self, failing: int | None = None) -> None:
        self.failing = failing

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> dict:
        if row == self.failing:
            raise KeyError("no such picture")
        return {"x": torch.tensor(FEATURES[row]), "labels": int(LABELS[row])}


def _dicts() -> list[dict]:
    return [{"x": x, "labels": int(y)} for x, y in zip(FEATURES, LABELS)]


def _hugging_face() -> Dataset:
    return Dataset.from_dict({"x": FEATURES, "labels": LABELS})


def _transformed() -> Dataset:
    data = Dataset.from_dict({"row": range(ROWS)})
    data.set_transform(
        lambda rows: {"x": [FEATURES[r] for r in rows["row"]], "labels": [int(LABELS[r]) for r in rows["row"]]}
    )
    return data


def _tensors() -> TensorDataset:
    return TensorDataset(torch.tensor(FEATURES), torch.tensor(LABELS))


SETS = {
    "own class": Items,
    "list of dicts": _dicts,
    "list of tuples": lambda: list(zip(FEATURES, LABELS)),
    "hugging face": _hugging_face,
    "hugging face, shuffled": lambda: _hugging_face().shuffle(seed=1),
    "hugging face, as tensors": lambda: _hugging_face().with_format("torch"),
    "hugging face, transformed": _transformed,
    "tensors": _tensors,
    "subset of tensors": lambda: Subset(_tensors(), list(range(600, 700)) + list(range(0, 100))),
    "subset of dicts": lambda: Subset(_dicts(), range(5, 655)),
    "joined": lambda: ConcatDataset([_tensors(), Subset(_tensors(), [1, 2, 3])]),
    "joined of two kinds": lambda: ConcatDataset([Items(), _dicts()]),
}


@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
def test_every_kind_of_set_gives_the_counts_of_its_items(make) -> None:
    data = make()
    items = [as_mapping(data[i]) for i in range(len(data))]
    names = list(items[0])
    facts = measure_split(read_split("train", data), ["labels"], ["x", "0"])
    assert facts.rows == len(items) and facts.labels_complete and facts.failure is None
    assert facts.labels is not None
    assert facts.labels.column == names[1]
    assert dict(facts.labels.census) == Counter(int(i[names[1]]) for i in items)
    x = facts.column(names[0])
    assert x is not None
    bad = [row for row, i in enumerate(items) if not np.isfinite(np.asarray(i[names[0]])).all()]
    assert list(x.non_finite_rows) == bad and x.non_finite == len(bad)
    assert x.shape == (6,)
    assert len(facts.hashes) == len({np.asarray(i[names[0]]).tobytes() for i in items})
    assert all(len(facts.row_hashes) == n for n in (facts.hashed, len(items)))


@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
def test_the_sample_is_evenly_spaced_and_in_order(make) -> None:
    data = make()
    split = read_split("train", data)
    wanted = sorted({int(i) for i in np.linspace(0, len(data) - 1, min(512, len(data)))})
    assert list(split.indices) == wanted and len(split.items) == len(wanted)


def test_a_set_that_raises_at_item_7_names_the_row_and_the_line() -> None:
    split = read_split("train", Items(failing=7))
    assert split.failed_row == 7
    assert split.failure is not None and split.failure.type == "KeyError"
    assert split.failure.where is not None and split.failure.where.file.endswith("test_data_reading.py")
    assert "no such picture" in split.failure.trace[-1]


def test_an_iterable_set_is_read_from_its_beginning() -> None:
    for data in (IterableDataset.from_generator(lambda: iter(_dicts())), _Stream(2000)):
        split = read_split("train", data)
        assert split.kind == "iterable" and split.rows is None and len(split.items) == 512
    assert read_split("train", _Stream(20)).rows == 20
    assert read_split("train", _Stream(0)).rows == 0


class _Stream(torch.utils.data.IterableDataset):
    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __iter__(self):
        return ({"x": FEATURES[0], "labels": 0} for _ in range(self.rows))


def test_no_set_has_no_rows() -> None:
    split = read_split("train", None)
    assert split.rows == 0 and split.kind == "none"


def test_texts_and_missing_labels() -> None:
    labels = [None if i % 35 == 0 else f"class {i % 3}" for i in range(ROWS)]
    facts = measure_split(read_split("train", Dataset.from_dict({"text": TEXTS, "label": labels})), ["label"])
    label = facts.column("label")
    assert facts.labels is not None and label is not None
    assert facts.labels.kind == "text" and dict(facts.labels.census) == Counter(v for v in labels if v is not None)
    assert list(label.missing_rows) == list(range(0, ROWS, 35)) and label.missing == 20
    assert len(facts.hashes) == len(set(TEXTS))


def test_the_rows_that_two_sets_share() -> None:
    train = measure_split(read_split("train", _dicts()[:500]), ["labels"], ["x"])
    held = measure_split(read_split("evaluation", _dicts()[450:600]), ["labels"], ["x"])
    assert overlap(train, held) == [(i, 450 + i) for i in range(50)]
    assert overlap(train, None) == []


def test_lists_within_lists_are_read_whole() -> None:
    pictures = _RANDOM.normal(size=(60, 4, 5))
    pictures[33, 2, 1] = np.nan
    facts = measure_split(read_split("train", Dataset.from_dict({"pixels": pictures.tolist()})), ["labels"])
    column = facts.column("pixels")
    assert column is not None and column.shape == (4, 5) and column.non_finite_rows == (33,)


def test_rows_of_different_lengths() -> None:
    rows = [list(range(1 + i % 9)) for i in range(100)]
    column = measure_split(read_split("train", Dataset.from_dict({"input_ids": rows})), ["labels"]).column("input_ids")
    assert column is not None and column.median_length == 5


class _Pictures(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4_000

    def __getitem__(self, row: int) -> dict:
        picture = np.full((3, 128, 128), row, dtype=np.float32)
        if row == 2_345:
            picture[0, 0, 0] = np.nan
        return {"pixel_values": picture, "labels": row % 10}


def test_pictures_are_counted_and_not_kept() -> None:
    """4,000 pictures of 197 kB are 786 MB; a sample of them is kept, and of the rest labels and hashes."""
    tracemalloc.start()
    split = read_split("train", _Pictures(), seconds=60)
    facts = measure_split(split, ["labels"], ["pixel_values"])
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 150 * 2**20
    assert facts.labels is not None and set(facts.labels.census.values()) == {400}
    column = facts.column("pixel_values")
    assert column is not None and column.non_finite_rows == (2_345,)
    assert facts.hashed_all and len(facts.hashes) == 4_000


def test_the_labels_of_a_million_rows_are_counted() -> None:
    rows = 1_000_000
    texts = [f"row {i} of a table of many" for i in range(rows)]
    data = Dataset.from_dict({"text": texts, "value": _RANDOM.normal(size=rows), "label": np.arange(rows) % 4})
    for one in (data, data.shuffle(seed=0)):
        facts = measure_split(read_split("train", one), ["label"])
        assert facts.labels is not None and set(facts.labels.census.values()) == {rows // 4}
        assert facts.labels_complete


def test_a_data_set_that_answers_to_every_name_is_not_looked_into_for_ever() -> None:
    from trainwright.adapters.data.indexing import _item_method

    class Proxy:
        def __getattr__(self, name):
            return Proxy()

    assert _item_method(Proxy()) is None
