"""Steps of a fit on the extreme rows of its sets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from trainwright.adapters.data.odd_rows import MOST_ROWS, RowStep, TriedSet, try_worst_rows
from trainwright.adapters.data.source_cells import with_cells
from trainwright.adapters.keras.input.data_sets import step_on_each
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.one_batch import Batch, rows_of_batch
from trainwright.adapters.keras.input.sources import Arrays, Drawn
from trainwright.adapters.keras.training import FitTraining
from trainwright.probes.splits.odd_rows import OddRows
from trainwright.seams.failures.blame import tolerated
from trainwright.stages import BadRow, DatasetFacts, OddRowFacts, Reading, SplitFacts
from trainwright.timing import now

READING_SHARE = 0.6


def try_rows(fit: FitTraining, dataset: DatasetFacts, seconds: float) -> OddRowFacts:
    """What steps on the extreme rows come to."""
    readings, bad = dict[str, Reading](), list[BadRow]()
    pairs = [(fit.data, dataset.train), (fit.data.validation, dataset.evaluation)]
    sets = [(data, facts) for data, facts in pairs if data is not None and facts is not None]
    for data, facts in sets:
        arrays = isinstance(data.source, Arrays)
        found = (_of_arrays if arrays else _of_stream)(fit, data, facts, seconds / len(sets))
        if found is not None:
            readings[facts.name] = found[0]
            bad += found[1]
    by_name = {facts.name: data for data, facts in sets}

    def item_of(name: str, row: int) -> Mapping[str, Any] | None:
        data = by_name[name]
        if not isinstance(data.source, Arrays):  # its rows have no lasting numbers
            return None
        return next(rows_of_batch(next(data.chosen([row]).elements()))).view()

    return with_cells(OddRowFacts(readings=readings, bad=tuple(bad)), fit.scope, item_of)


def _of_arrays(fit: FitTraining, data: FitData, facts: SplitFacts, seconds: float) -> tuple[Reading, list[BadRow]]:
    tried = TriedSet(
        name=facts.name,
        odd=facts.odd,
        others=range(facts.rows or 0),
        batch_size=data.batch_size or MOST_ROWS,
        step=lambda rows: fit.step_on(data.chosen(rows)),
        evaluated=facts.name != "train",
    )
    return Reading(read=facts.read, rows=facts.rows), try_worst_rows(tried, seconds)


def _of_stream(
    fit: FitTraining, data: FitData, facts: SplitFacts, seconds: float
) -> tuple[Reading, list[BadRow]] | None:
    """The same in one more pass, because a stream's rows may come in another order each time."""
    started = now()
    found, kept, ended = OddRows(), dict[int, Batch](), False
    most = data.source.drawn if isinstance(data.source, Drawn) else None  # what is drawn from it is kept in memory
    with tolerated():  # data that raise are reported with the batches
        for batch in itertools.islice(data.elements(), most):
            if batch.is_row:
                return None
            numbers = range(found.read, found.read + batch.rows)
            found.read += batch.rows
            for name, values in batch.view().items():
                found.add_column(name, values, numbers)
            wanted = {one.row for one in found.found()}
            kept = {n: row for n, row in kept.items() if n in wanted or n < 4 * MOST_ROWS}
            if any(n in wanted or n < 4 * MOST_ROWS for n in numbers):
                rows = zip(numbers, rows_of_batch(batch))
                kept |= {n: row for n, row in rows if n in wanted or n < 4 * MOST_ROWS}
            if now() - started > READING_SHARE * seconds:
                break
        else:
            ended = most is None

    def step(rows: Sequence[int]) -> RowStep | None:
        return step_on_each(fit.step_on, data.of_rows([kept[row] for row in rows]))

    tried = TriedSet(
        name=facts.name,
        odd=found.found(),
        others=[n for n in kept if n < 4 * MOST_ROWS],
        batch_size=data.batch_size or MOST_ROWS,
        step=step,
        evaluated=facts.name != "train",
    )
    reading = Reading(read=found.read, rows=found.read if ended else facts.rows)
    return reading, try_worst_rows(tried, seconds - (now() - started))
