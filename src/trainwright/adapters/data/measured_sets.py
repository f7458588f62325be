"""The facts of a training's sets, once they were read: the same for each kind of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of, label_copy_of, label_sources
from trainwright.adapters.data.numbering import find_renumbered
from trainwright.adapters.data.odd_rows import MOST_ROWS, Step, try_extremes, try_unusable
from trainwright.adapters.data.reading import objects_in_scope
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.texts import cut_texts, text_facts, tokenizer_facts
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.labels import is_one_hot
from trainwright.probes.splits.transfer import transfer_of
from trainwright.probes.splits.two_sets import between
from trainwright.stages import DatasetFacts, Lookalike, Split, SplitFacts
from trainwright.tensors.items import length


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
    is_numbered: bool = True
    """Whether such a step can be on any row of the training set, and not only on those that were read."""
    has_one_hot: bool = False
    """Whether labels with one column a class stand for class numbers."""
    passed: Sequence[Any] | None = None
    """What the training was given of the script's objects; None: the sets themselves."""
    sizes: Sequence[int] = ()
    """Other numbers of rows that the labels had before some were selected."""


def measure_sets(sets: ReadSets) -> DatasetFacts:
    """The facts of both sets, and those that involve both."""
    accepts, scope, names, has_one_hot = tuple(sets.accepts), sets.scope, sets.label_names, sets.has_one_hot
    train = measure_split(sets.train, names, accepts, one_hot=has_one_hot)
    evaluation = measure_split(sets.held, names, accepts, one_hot=has_one_hot) if sets.held else None
    read = with_class_numbers(sets.train, names) if has_one_hot else sets.train
    held = with_class_numbers(sets.held, names) if has_one_hot and sets.held else sets.held
    alignment, batch_size = alignment_of(read, train, accepts), sets.batch_size or MOST_ROWS
    data, passed = sets.data["train"], sets.passed if sets.passed is not None else [*sets.data.values()]
    return DatasetFacts(
        train=try_extremes(train, accepts, batch_size, sets.step_on(train)) if sets.is_numbered else train,
        evaluation=evaluation,
        accepts=accepts,
        alignment=alignment,
        aligned_source=aligned_source(read, train, alignment, accepts, scope),
        renumbered=find_renumbered(read, held, scope),
        evaluation_alignment=alignment_of(held, evaluation, accepts) if held and evaluation else None,
        label_copy=label_copy_of(read, train, accepts),
        lookalikes=tuple(_lookalikes(sets.data, scope)),
        tokenizer=tokenizer_facts(sets.tokenizer, scope),
        batch_size=sets.batch_size,
        repetition=repetition_of(data, read, train),
        sources=tuple(label_sources(train, evaluation, held, scope, passed, sets.sizes)),
        texts=text_facts(read, sets.tokenizer),
        cut_texts=cut_texts(data, sets.tokenizer, scope),
        unusable_rows={
            s.name: try_unusable(s, accepts, batch_size, sets.step_on(s)) for s in (train, evaluation) if s is not None
        },
        transfer=transfer_of(read, train, held, evaluation, accepts),
        **between(read, train, held, evaluation, accepts),
    )


def with_class_numbers(split: Split, names: Sequence[str]) -> Split:
    """The set with one-hot targets converted to class numbers."""
    changed = {
        n: np.argmax(c, axis=1)
        for n, c in split.columns.items()
        if n in names and isinstance(c, np.ndarray) and is_one_hot(c)
    }
    if not changed:
        return split
    items = [{n: int(np.argmax(v)) if n in changed else v for n, v in item.items()} for item in split.items]
    return replace(split, columns={**split.columns, **changed}, items=items)


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
