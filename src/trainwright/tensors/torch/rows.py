"""Views of data sets that change, select or join rows as they are read. Nothing is copied or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch.utils.data import Dataset, IterableDataset

from trainwright.tensors.items import reader_of

ChangeRow = Callable[[dict[str, Any], int], Mapping[str, Any]]


class _Changed(Dataset):
    def __init__(self, data: Any, change: ChangeRow) -> None:
        self.data, self.change = data, change

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> Mapping[str, Any]:
        return self.change(dict(reader_of(self.data)(row)), row)


class _ChangedStream(IterableDataset):
    def __init__(self, data: Any, change: ChangeRow) -> None:
        self.data, self.change = data, change

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (self.change(dict(item), row) for row, item in enumerate(self.data))


class _Chosen(Dataset):
    def __init__(self, sets: Sequence[Any], rows: Sequence[tuple[int, int]]) -> None:
        self.sets, self.rows = sets, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Any:
        of, at = self.rows[row]
        return reader_of(self.sets[of])(at)


def change_rows(data: Any, change: ChangeRow) -> Any:
    return _Changed(data, change) if hasattr(data, "__len__") else _ChangedStream(data, change)


def choose_rows(data: Any, rows: Sequence[int]) -> Any:
    return data.select(rows) if hasattr(data, "select") else _Chosen([data], [(0, row) for row in rows])


def choose_of_several(sets: Sequence[Any], rows: Sequence[tuple[int, int]]) -> Any:
    return _Chosen(sets, rows)
