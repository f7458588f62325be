"""The datasets of a training loop: those of its loaders, or the script's tensors whose rows form its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from trainwright.adapters.data.reading import read_split
from trainwright.adapters.loop.evaluated_rows import evaluated_rows
from trainwright.adapters.loop.named_rows import HELD_OUT, NamedRows, NamedStream, coarser_position
from trainwright.adapters.loop.sliced_rows import Columns, rows_of_script
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.sampler import sampler_of
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.seams.source.written import assignment_place
from trainwright.stages.dataset import Split

_OF_ALL_ROWS = (RandomSampler, SequentialSampler)


@dataclass(frozen=True)
class ReadSet:
    """A set that was read, and the names of its label column."""

    split: Split
    label_names: tuple[str, ...]
    labels_at: Place | None = None
    """The line that gives the loop its labels, if it has no loader; of evaluation rows, the line that evaluates them."""
    data: Any = None
    """The dataset itself."""


def read_sets(training: LoopTraining) -> tuple[ReadSet, ReadSet | None]:
    """The training set and the evaluation set, if there is one; columns have the names in the views."""
    data, labels_at = training_set(training) if training.items or training.loaders else (None, None)
    if data is None:
        return ReadSet(Split(name="train", rows=None, kind="none"), ()), None
    names = training.item_names
    cut = _cut_labels(training)
    if cut is not None:
        names = {**names, cut.position: cut.name}
    split = _as_the_loss_sees(read_split("train", _named(data, names)), cut)
    labels = (cut.name,) if cut is not None else _label_names(training, split)
    held = evaluation_set(training, data)
    if (named := _named_held_out(training, data)) is not None and held is None:
        return ReadSet(split, labels, labels_at, data), ReadSet(replace(split, name="evaluation"), labels, named)
    if held is None:
        return ReadSet(split, labels, labels_at, data), _without_loader(training, split, labels)
    evaluated = _as_the_loss_sees(read_split("evaluation", _named(held, names)), cut)
    return ReadSet(split, labels, labels_at, data), ReadSet(evaluated, labels)


def _without_loader(training: LoopTraining, train: Split, labels: tuple[str, ...]) -> ReadSet | None:
    """The rows that the script's code passes to the model to evaluate it; None if there are none."""
    found = evaluated_rows(training, train, labels)
    return ReadSet(read_split("evaluation", found[0]), labels, found[1]) if found is not None else None


@dataclass(frozen=True)
class _Cut:
    """Labels that the step makes coarser for its loss: cut to integers, or several values made one."""

    position: str
    """Where the items have them."""
    name: str
    """Their name in the views."""
    becomes: Mapping[float, int] | None
    """What each value becomes; None: it loses its fraction."""

    def after(self, values: np.ndarray) -> np.ndarray:
        """Values as the loss gets them; those never seen in a batch stay as they are."""
        if self.becomes is None:
            return np.asarray(np.trunc(np.nan_to_num(values)), dtype=np.int64)
        return np.asarray([self.becomes.get(float(v), v) for v in values], dtype=np.int64)


def _cut_labels(training: LoopTraining) -> _Cut | None:
    """The labels of the items, if the loss gets them coarser."""
    if not training.items or training.body.draws or not training.loaders:
        return None
    with tolerated():  # a step that raises is reported with the step
        key = training.label_key(training.view(Turn(0)))
        if key is None or key in training.item_names.values():
            return None
        turns = range(len(training.items))
        seen = [(training.body.batch_of(training.items[i]), training.view(Turn(i)).get(key)) for i in turns]
        found = coarser_position(seen, training.item_names)
        return _Cut(found[0], key, found[1]) if found is not None else None
    return None


def _as_the_loss_sees(split: Split, cut: _Cut | None) -> Split:
    """A set whose labels are as the loss gets them."""
    if cut is None:
        return split
    column = split.columns.get(cut.name)
    values = column if column is not None else [item[cut.name] for item in split.items if cut.name in item]
    before = np.asarray([float(v) for v in values])
    changed: dict[str, Any] = {"distinct_before_cut": {cut.name: int(np.unique(before).size)}}
    if column is not None:
        changed["columns"] = {**split.columns, cut.name: cut.after(before)}
    items = [
        {**item, cut.name: int(cut.after(np.asarray([float(item[cut.name])]))[0])} if cut.name in item else item
        for item in split.items
    ]
    return replace(split, items=items, **changed)


def _named(data: Any, names: Mapping[str, str]) -> Any:
    """The dataset with the views' names; unchanged if its rows are mappings already."""
    if not names or isinstance(data, Columns) or hasattr(data, "column_names"):
        return data
    return (
        NamedRows(data, names)
        if hasattr(data, "__len__") and hasattr(data, "__getitem__")
        else NamedStream(data, names)
    )


def training_set(training: LoopTraining) -> tuple[Any, Place | None]:
    """The dataset of the loop's loader, otherwise the script's tensors behind its batches, with the labels' line."""
    if training.loaders:
        return training.loaders[0].dataset, None
    with tolerated():  # a step that raises is reported with the step
        return (
            (None, None) if not training.items else rows_of_script(training, training.label_key(training.view(Turn(0))))
        )
    return None, None


def evaluation_set(training: LoopTraining, train: Any) -> Any:
    """The dataset of the script's first evaluation loader."""
    return next((v.dataset for _, v in training.evaluation_loaders() if v.dataset is not train), None)


def _named_held_out(training: LoopTraining, train: Any) -> Place | None:
    """The line that names a loader as one of held-out rows, although it reads all rows of the training set."""
    loop = getattr(training.body, "loop", None)
    for frame in [loop.frame, *callers(loop.frame)] if isinstance(loop, Loop) and training.loaders else ():
        for name, value in frame.f_locals.items():
            if not isinstance(value, DataLoader) or not any(word in name.lower() for word in HELD_OUT):
                continue
            both = (value, training.loaders[0])
            if (
                value.dataset is train
                and value is not both[1]
                and all(type(sampler_of(v)) in _OF_ALL_ROWS for v in both)
            ):
                return assignment_place(frame.f_code.co_filename, name, frame.f_lineno, of_call=False)
    return None


def _label_names(training: LoopTraining, split: Split) -> tuple[str, ...]:
    """Possible names of the label column, the most likely first."""
    usual: tuple[str, ...] = ("labels", "label", "target", "targets", "y", "label_ids")
    key = None
    with tolerated():  # a step that raises is reported with the step
        key = training.label_key(training.view(Turn(0))) if training.items else None
    if key is not None:  # the batch's labels are computed from a column with other values
        return (key,) if training.item_names else (key, *usual)
    names = list(split.items[0]) if split.items else []
    positions = [n for n in names if n.isdigit()]
    if len(names) > 1 and positions and not any(n in names for n in usual):
        return (positions[-1],)
    return usual
