"""The data sets behind a training loop: those of its loaders, or the tensors of the script that its batches are rows of."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trainwright.adapters.data import read_split
from trainwright.adapters.loop_items import NamedRows, NamedStream, evaluation_loaders
from trainwright.adapters.loop_training import LoopTraining, Turn
from trainwright.stages.dataset import Split


@dataclass(frozen=True)
class ReadSet:
    """A set that was read, and the names of its label column."""

    split: Split
    label_names: tuple[str, ...]


def read_sets(training: LoopTraining) -> tuple[ReadSet, ReadSet | None]:
    """The training set and, where the script has one, the evaluation set; columns have the names of the views."""
    data = training_set(training) if training.items or training.loaders else None
    if data is None:
        return ReadSet(Split(name="train", rows=None, kind="none"), ()), None
    names = training.item_names
    split = read_split("train", _named(data, names))
    labels = _label_names(training, split)
    held = evaluation_set(training, data)
    if held is None:
        return ReadSet(split, labels), None
    return ReadSet(split, labels), ReadSet(read_split("evaluation", _named(held, names)), labels)


def _named(data: Any, names: Mapping[str, str]) -> Any:
    """The data set under the names of the views; as it is where its rows are mappings already."""
    if not names or isinstance(data, _Columns) or hasattr(data, "column_names"):
        return data
    return (
        NamedRows(data, names)
        if hasattr(data, "__len__") and hasattr(data, "__getitem__")
        else NamedStream(data, names)
    )


def training_set(training: LoopTraining) -> Any:
    """The data set of the loop's loader, else the tensors in the script that the first batch is rows of."""
    if training.loaders:
        return training.loaders[0].dataset
    with contextlib.suppress(Exception):  # a step that raises is measured as a step
        views = [training.view(turn) for turn in training.take(len(training.items), seed=0)]
        sources = {k: _source([view.get(k) for view in views], training.scope) for k in views[0]}
        columns = {k: source for k, source in sources.items() if source is not None}
        rows = {len(c) for c in columns.values()}
        if columns and len(rows) == 1:
            return _Columns(columns)
    return None


class _Columns:
    """Tensors or arrays of as many rows as a map-style data set."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {k: v[row] for k, v in self.columns.items()}


def _source(batches: Sequence[Any], scope: Mapping[str, Any]) -> Any:
    """The smallest tensor or array in the script that holds the first rows of all these batches."""
    found = []
    for value in scope.values():
        if not isinstance(value, (torch.Tensor, np.ndarray)) or not value.ndim or value.dtype == object:
            continue
        data = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        if not data.requires_grad and all(_holds(data, batch) for batch in batches):
            found.append(data)
    return min(found, key=len, default=None)


def _holds(data: torch.Tensor, batch: Any) -> bool:
    if not isinstance(batch, torch.Tensor) or not batch.dim() or not len(batch):
        return False
    if data.shape[1:] != batch.shape[1:] or len(data) < len(batch):
        return False
    first = batch[0].detach().to(data.dtype).cpu()
    return bool((data.cpu() == first).reshape(len(data), -1).all(dim=1).any())


def evaluation_set(training: LoopTraining, train: Any) -> Any:
    """The data set of the script's first loader for evaluation."""
    return next(
        (
            v.dataset
            for _, v in evaluation_loaders(training.scope, training.loaders)
            if v.dataset is not train
        ),
        None,
    )


def _label_names(training: LoopTraining, split: Split) -> tuple[str, ...]:
    """The names that the label column may have, the likeliest first."""
    usual: tuple[str, ...] = ("labels", "label", "target", "targets", "y", "label_ids")
    key = None
    with contextlib.suppress(Exception):  # a step that raises is measured as a step
        key = training.label_key(training.view(Turn(0)))
    if key is not None:  # a column that has other values is made into the labels on the way
        return (key,) if training.item_names else (key, *usual)
    names = list(split.items[0]) if split.items else []
    positions = [n for n in names if n.isdigit()]
    if len(names) > 1 and positions and not any(n in names for n in usual):
        return (positions[-1],)
    return usual
