"""Maps rows of a loader's dataset to the names that the model and the loss use, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.data.reading import as_mapping
from trainwright.tensors.items import reader_of

# Values that stand for classes are seen this often on average; ids and measurements are not.
_EACH_SEEN = 4
HELD_OUT = ("val", "valid", "test", "eval", "dev", "held")


class NamedRows:
    """A map-style dataset whose rows are mappings.

    Args:
        names: the name for each position of a tuple row.
    """

    def __init__(self, data: Any, names: Mapping[str, str]) -> None:
        self.data, self.names = data, names

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {self.names.get(k, k): v for k, v in as_mapping(reader_of(self.data)(row)).items()}


class NamedStream(torch.utils.data.IterableDataset[Any]):
    """The same for an iterable dataset."""

    def __init__(self, data: Any, names: Mapping[str, str]) -> None:
        self.data, self.names = data, names

    def __iter__(self) -> Any:
        for item in self.data:
            yield {self.names.get(k, k): v for k, v in as_mapping(item).items()}


class UnnamedRows:
    """Converts mapping rows to the form of another dataset's rows."""

    def __init__(self, data: Any, like: Any, names: Mapping[str, str]) -> None:
        self.data, self.like, self.names = data, like, names

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> Any:
        return _unnamed(self.data[row], reader_of(self.like)(0), self.names)


class UnnamedStream(torch.utils.data.IterableDataset[Any]):
    """The same for an iterable dataset; the mapping rows may be those of either kind."""

    def __init__(self, data: Any, like: Any, names: Mapping[str, str]) -> None:
        self.data, self.like, self.names = data, like, names

    def __iter__(self) -> Any:
        form = next(iter(self.like), None)
        rows = (self.data[i] for i in range(len(self.data))) if hasattr(self.data, "__getitem__") else self.data
        for values in rows:
            yield _unnamed(values, form, self.names)


def _unnamed(values: Mapping[str, Any], form: Any, names: Mapping[str, str]) -> Any:
    """A mapping row in the form of another row."""
    if hasattr(form, "keys"):
        return values
    if isinstance(form, (tuple, list)):
        return type(form)([values[names.get(str(i), str(i))] for i in range(len(form))])
    return next(iter(values.values()))


def names_of_items(batch: Any, view: Mapping[str, Any]) -> dict[str, str]:
    """The name in a view for each position of a tuple batch, if the values are the same."""
    if hasattr(batch, "keys"):
        return {}
    found: dict[str, str] = {}
    for position, value in as_mapping(batch).items():
        for name, seen in view.items():
            if name not in found.values() and _same(value, seen):
                found[position] = name
                break
    return found


def coarser_position(
    seen: Sequence[tuple[Any, Any]], taken: Mapping[str, str]
) -> tuple[str, dict[float, int] | None] | None:
    """The position of tuple batches whose values the loss gets coarser, and what becomes of each value.

    None for the latter means that they lose their fractions.

    Args:
        seen: batches, each with the labels that the loss got.
        taken: the positions whose values are known under another name.
    """
    batch, labels = seen[0]
    if hasattr(batch, "keys") or not isinstance(labels, torch.Tensor) or labels.is_floating_point():
        return None
    for position, value in as_mapping(batch).items():
        if position in taken or not isinstance(value, torch.Tensor) or value.numel() != labels.numel():
            continue
        if value.is_floating_point() and _same(value.trunc(), labels):
            return position, None
        becomes = _mapped([(as_mapping(b).get(position), got) for b, got in seen])
        if becomes is not None:
            return position, becomes
    return None


def _mapped(pairs: Sequence[tuple[Any, Any]]) -> dict[float, int] | None:
    """What each value becomes, if several become one, each always the same, and every one is seen several times."""
    becomes: dict[float, int] = {}
    count = 0
    for value, got in pairs:
        if not isinstance(value, torch.Tensor) or not isinstance(got, torch.Tensor) or value.numel() != got.numel():
            return None
        count += value.numel()
        for one, other in zip(value.reshape(-1).tolist(), got.reshape(-1).tolist()):
            if becomes.setdefault(float(one), int(other)) != int(other):
                return None
    few = 2 <= len(becomes) <= count / _EACH_SEEN
    return becomes if few and len(set(becomes.values())) < len(becomes) else None


def _same(left: Any, right: Any) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor) or left.numel() != right.numel():
        return False
    pair = [t.detach().reshape(-1).to("cpu", torch.float64) for t in (left, right)]
    return bool(torch.equal(*(torch.nan_to_num(t) for t in pair)))


def put_dataset(loader: Any, dataset: Any) -> None:
    """Make a loader read another dataset with the same number of rows."""
    object.__setattr__(loader, "dataset", dataset)
    for owner in around(loader)[1:]:
        if hasattr(owner, "data_source"):
            owner.data_source = dataset


def around(loader: Any) -> list[Any]:
    """A loader and its samplers."""
    inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    return [o for o in (loader, getattr(loader, "sampler", None), inner) if o is not None]


def evaluation_loaders(
    scope: Mapping[str, Any],
    trained: Sequence[Any],
    other: frozenset[str] = frozenset(),
    used: frozenset[str] | None = None,
) -> list[tuple[str, Any]]:
    """A script's loaders with names that suggest evaluation, otherwise any that the loop does not draw from.

    Args:
        other: the names that the script's other trainings use; not for evaluation, unless the name says so.
        used: the names that the script's code reads; None: unknown. A loader that nothing reads is not for evaluation.
    """
    own = [loader.dataset for loader in trained]
    loaders = [(n, v) for n, v in scope.items() if isinstance(v, torch.utils.data.DataLoader)]
    found = [(n, v) for n, v in loaders if not any(v.dataset is d for d in own)]
    named = [("evaluation", v) for n, v in found if any(word in n.lower() for word in HELD_OUT)]
    if not named and any("train" in n.lower() for n, _ in found):
        return []
    return named or [("evaluation", v) for n, v in found if n not in other and (used is None or n in used)]
