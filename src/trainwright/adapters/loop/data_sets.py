"""The datasets of a training loop: those of its loaders, or the script's tensors whose rows form its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.data.reading import read_split
from trainwright.adapters.loop.named_rows import NamedRows, NamedStream
from trainwright.adapters.loop.sliced_rows import Columns, rows_of_script
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import Turn
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.stages.dataset import Split


@dataclass(frozen=True)
class ReadSet:
    """A set that was read, and the names of its label column."""

    split: Split
    label_names: tuple[str, ...]
    labels_at: Place | None = None
    """The line that gives the loop its labels, if it has no loader."""
    data: Any = None
    """The dataset itself."""


def read_sets(training: LoopTraining) -> tuple[ReadSet, ReadSet | None]:
    """The training set and the evaluation set, if there is one; columns have the names in the views."""
    data, labels_at = training_set(training) if training.items or training.loaders else (None, None)
    if data is None:
        return ReadSet(Split(name="train", rows=None, kind="none"), ()), None
    names = training.item_names
    split = read_split("train", _named(data, names))
    labels = _label_names(training, split)
    held = evaluation_set(training, data)
    if held is None:
        return ReadSet(split, labels, labels_at, data), None
    return ReadSet(split, labels, labels_at, data), ReadSet(read_split("evaluation", _named(held, names)), labels)


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
