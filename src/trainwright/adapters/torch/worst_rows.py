"""Sets of torch whose extreme rows are put through a step: what was read of them, and what can still be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils.data import DataLoader, Dataset

from trainwright.adapters.data.odd_rows import (
    RowStep,
    TriedSet,
    one_by_one,
    part_of_rows,
    read_further,
    read_stream,
    try_worst_rows,
)
from trainwright.adapters.data.reading import length
from trainwright.probes.splits.odd_rows import OddRows
from trainwright.stages import BadRow, Reading, SplitFacts
from trainwright.tensors.items import reader_of
from trainwright.timing import now

# The share of the time that reading further may take; the rest is for steps.
READING_SHARE = 0.8
# A set of fewer rows is not worth starting processes for.
FEWEST_FOR_WORKERS = 100_000

ItemStep = Callable[[Sequence[Any]], RowStep | None]
"""A step on these items of a set."""


def try_rows_of(
    data: Any,
    facts: SplitFacts,
    step: ItemStep,
    seconds: float,
    *,
    batch_size: int,
    workers: int,
    evaluated: bool,
) -> tuple[Reading, list[BadRow]]:
    """What steps on the extreme rows of a set come to, after as many of its rows were read as time allows."""
    started = now()
    rows, kept = length(data), dict[int, Any]()
    if rows is None:
        found, kept, ended = read_stream(data, READING_SHARE * seconds)
        odd, reading = found.found(), Reading(read=found.read, rows=found.read if ended else None)
        others: Sequence[int] = list(kept)
    else:
        odd, reading, others = list(facts.odd), Reading(read=facts.read, rows=rows), range(min(rows, facts.read))
        if facts.read < rows:
            reader = _in_processes(workers) if workers and rows >= FEWEST_FOR_WORKERS else one_by_one
            found = read_further(data, rows, facts.read, READING_SHARE * seconds, reader)
            known = {one.row for one in odd}
            odd = [*(o for o in found.found() if o.row not in known), *odd]
            reading = Reading(read=min(rows, facts.read + found.read), rows=rows)

    tried = TriedSet(
        name=facts.name,
        odd=odd,
        others=others,
        batch_size=batch_size,
        step=lambda numbers: step(Items(data, kept, numbers)),
        evaluated=evaluated,
    )
    return reading, try_worst_rows(tried, seconds - (now() - started))


class Items(Sequence[Any]):
    """Some rows of a set, read as they are asked for, or those of a stream that were kept."""

    def __init__(self, data: Any, kept: dict[int, Any], rows: Sequence[int]) -> None:
        self.data, self.kept, self.rows = data, kept, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: Any) -> Any:
        row = self.rows[position]
        return self.kept[row] if self.kept else reader_of(self.data)(row)


class _Parts(Dataset[OddRows]):
    """Parts of a set as items, read where they are asked for: in a loader's worker."""

    def __init__(self, data: Any, parts: Sequence[Sequence[int]]) -> None:
        self.data, self.parts = data, parts

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, part: int) -> OddRows:
        return part_of_rows(self.data, self.parts[part])


def _in_processes(workers: int) -> Callable[[Any, Sequence[Sequence[int]]], Iterator[OddRows]]:
    """A reader with as many worker processes as the training's loader."""

    def read(data: Any, parts: Sequence[Sequence[int]]) -> Iterator[OddRows]:
        return iter(DataLoader(_Parts(data, parts), batch_size=None, num_workers=workers))

    return read
