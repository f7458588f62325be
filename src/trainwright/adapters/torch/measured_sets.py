"""The facts of a training's sets, once they were read: the same for each kind of training in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of, label_copy_of, label_sources
from trainwright.adapters.data.numbering import renumbered
from trainwright.adapters.data.odd_rows import MOST_ROWS, Step, try_extremes, try_unusable
from trainwright.adapters.data.reading import length, objects_in_scope
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.texts import cut_texts, text_facts, tokenizer_facts
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.transfer import transfer_of
from trainwright.probes.splits.two_sets import between
from trainwright.stages.dataset import DatasetFacts, Lookalike, Split, SplitFacts


@dataclass(frozen=True, kw_only=True)
class ReadSets:
    """The training set and the evaluation set, if there is one, as they were read, and what belongs to them."""

    train: Split
    held: Split | None
    data: Mapping[str, Any]
    """The sets themselves, by `train` and `evaluation`."""
    label_names: Sequence[str]
    """Possible names of the label column, the most likely first."""
    accepts: Sequence[str]
    """The columns that the model takes."""
    scope: Mapping[str, Any]
    """The script's names."""
    tokenizer: Any = None
    batch_size: int = 0
    step_on: Callable[[SplitFacts], Step]
    """A training step on rows of a set."""


def measure_sets(sets: ReadSets) -> DatasetFacts:
    """The facts of both sets, and those that involve both."""
    read, held, accepts, scope = sets.train, sets.held, tuple(sets.accepts), sets.scope
    train = measure_split(read, sets.label_names, accepts)
    evaluation = measure_split(held, sets.label_names, accepts) if held else None
    alignment, batch_size = alignment_of(read, train, accepts), sets.batch_size or MOST_ROWS
    data = sets.data["train"]
    return DatasetFacts(
        train=try_extremes(train, accepts, batch_size, sets.step_on(train)),
        evaluation=evaluation,
        accepts=accepts,
        alignment=alignment,
        aligned_source=aligned_source(read, train, alignment, accepts, scope),
        renumbered=renumbered(read, held, scope),
        evaluation_alignment=alignment_of(held, evaluation, accepts) if held and evaluation else None,
        label_copy=label_copy_of(read, train, accepts),
        lookalikes=tuple(_lookalikes(sets.data, scope)),
        tokenizer=tokenizer_facts(sets.tokenizer, scope),
        batch_size=sets.batch_size,
        repetition=repetition_of(data, read, train),
        sources=tuple(label_sources(train, evaluation, held, scope, [*sets.data.values()])),
        texts=text_facts(read, sets.tokenizer),
        cut_texts=cut_texts(data, sets.tokenizer, scope),
        unusable_rows={
            s.name: try_unusable(s, accepts, batch_size, sets.step_on(s)) for s in (train, evaluation) if s is not None
        },
        transfer=transfer_of(read, train, held, evaluation, accepts),
        **between(read, train, held, evaluation, accepts),
    )


def _lookalikes(sets: Mapping[str, Any], scope: Mapping[str, Any]) -> Iterator[Lookalike]:
    """Objects in scope with the rows of a passed set, or under its key in another dictionary, and with other columns."""
    named = list(objects_in_scope(scope))
    for split, data in sets.items():
        columns = getattr(data, "column_names", None)
        if columns is None or (count := length(data)) is None:
            continue
        keys = {_key(n.expression) for n in named if n.value is data} - {""}
        for name in named:
            other = getattr(name.value, "column_names", None)
            if isinstance(other, list) and name.value is not data:
                same_rows = length(name.value) == count
                if same_rows or _key(name.expression) in keys:
                    yield Lookalike(expression=name.expression, columns=tuple(other), split=split, same_rows=same_rows)


def _key(expression: str) -> str:
    """The key with its brackets, of a member of a dictionary."""
    return "".join(expression.partition("[")[1:])
