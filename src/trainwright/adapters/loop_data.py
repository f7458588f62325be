"""The data sets behind a training loop: those of its loaders, or the tensors of the script that its batches are rows of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from trainwright.adapters.data import as_mapping, read_split
from trainwright.adapters.loop_training import LoopTraining, Turn
from trainwright.stages.dataset import Split

_HELD_OUT = ("val", "valid", "test", "eval", "dev", "held")


@dataclass(frozen=True)
class ReadSet:
    """A set that was read, and which of its columns hold the labels."""

    split: Split
    label_names: tuple[str, ...]

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The sampled items."""
        return self.split.items


def read_sets(training: LoopTraining) -> tuple[ReadSet, ReadSet | None]:
    """The training set and, where the script has one, the evaluation set."""
    if not training.items and not training.loaders:
        return ReadSet(Split(name="train", rows=None, kind="none"), ()), None
    data = training_set(training)
    if data is None:
        return ReadSet(Split(name="train", rows=None, kind="none"), ()), None
    split = read_split("train", data)
    labels = _label_columns(training, split)
    held = evaluation_set(training, data)
    return ReadSet(split, labels), ReadSet(
        read_split("evaluation", held), labels
    ) if held is not None else None


def training_set(training: LoopTraining) -> Any:
    """The data set of the loop's loader, else the tensors in the script that the first batch is rows of."""
    if training.loaders:
        return training.loaders[0].dataset
    with contextlib.suppress(Exception):  # a step that raises is measured as a step
        view = training.view(Turn(0))
        columns = {k: found for k, v in view.items() if (found := _source(v, training.scope)) is not None}
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


def _source(batch: Any, scope: Mapping[str, Any]) -> Any:
    """The tensor or array in the script that holds a batch's rows among more of them."""
    if not isinstance(batch, torch.Tensor) or not batch.dim():
        return None
    for value in scope.values():
        if not isinstance(value, (torch.Tensor, np.ndarray)) or not value.ndim or value is batch:
            continue
        data = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        if data.shape[1:] != batch.shape[1:] or len(data) < len(batch) or data.requires_grad:
            continue
        first = batch[0].detach().to(data.dtype).cpu()
        same = (data == first).reshape(len(data), -1).all(dim=1)
        if bool(same.any()):
            return data
    return None


def evaluation_set(training: LoopTraining, train: Any) -> Any:
    """The data set of another loader of the script's, one that is named for evaluation first."""
    found = [
        (n, v.dataset)
        for n, v in training.scope.items()
        if isinstance(v, DataLoader) and v.dataset is not train
    ]
    named = [d for n, d in found if any(word in n.lower() for word in _HELD_OUT)]
    if not named and any("train" in n.lower() for n, _ in found):
        return None
    return next(iter([*named, *(d for _, d in found)]), None)


def _label_columns(training: LoopTraining, split: Split) -> tuple[str, ...]:
    """The columns of the items that are the labels of the batches, by their values."""
    if isinstance(training_set(training), _Columns):
        return ("labels",)
    usual = ("labels", "label", "target", "targets", "y", "label_ids")
    if not split.items:
        return usual
    names = list(split.items[0])
    if any(n in names for n in usual):
        return usual
    with contextlib.suppress(Exception):  # a step that raises is measured as a step
        labels = training.label_of(Turn(0))
        leaves = list(_leaves(as_mapping(training.items[0] if not training.body.draws else ())))
        for name, leaf in leaves:
            if isinstance(labels, torch.Tensor) and leaf.numel() == labels.numel() and name in names:
                if torch.equal(leaf.reshape(-1).double(), labels.reshape(-1).double()):
                    return (name,)
    return (names[-1],) if len(names) > 1 and all(n.isdigit() for n in names) else usual


def _leaves(item: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in item.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, (tuple, list)):
            for i, inner in enumerate(value):
                if isinstance(inner, torch.Tensor):
                    yield str(i), inner


__all__ = ["ReadSet", "evaluation_set", "read_sets", "replace", "training_set"]
