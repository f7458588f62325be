"""torch's layers by name, changes to them, and views of data sets with changed, chosen or joined rows; nothing is copied. Part of
`tensors/torch/objects.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset

from trainwright.tensors.items import reader_of

_INPUT_SIZE = ("in_features", "in_channels", "num_embeddings", "num_features", "input_size", "normalized_shape")
ChangeRow = Callable[[dict[str, Any], int], Mapping[str, Any]]


def register_lists(model: nn.Module, names: Sequence[str]) -> None:
    for name in names:
        owner, _, attribute = name.rpartition(".")
        module = model.get_submodule(owner)
        value = getattr(module, attribute)
        delattr(module, attribute)
        setattr(module, attribute, nn.ModuleDict(value) if isinstance(value, dict) else nn.ModuleList(value))


def output_layer(model: nn.Module) -> tuple[str, nn.Linear] | None:
    """The linear layer that produces the scores: the one with the configured width, or else the last one declared."""
    layers = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    width = getattr(getattr(model, "config", None), "num_labels", None)
    fitting = [(n, m) for n, m in layers if m.out_features == width]
    chosen = fitting or layers
    return chosen[-1] if chosen else None


@torch.no_grad()
def widen_head(model: nn.Module, classes: int) -> str:
    found = output_layer(model)
    if found is None:
        raise ValueError("widen_head needs a model with a linear layer; got none.")
    name, old = found
    new = nn.Linear(old.in_features, classes, bias=old.bias is not None).to(old.weight.device, old.weight.dtype)
    kept = min(classes, old.out_features)
    deviation = float(old.weight.std()) or 0.02
    new.weight.normal_(0.0, deviation)
    new.weight[:kept] = old.weight[:kept]
    if old.bias is not None:
        new.bias.zero_()
        new.bias[:kept] = old.bias[:kept]
    parent, _, attribute = name.rpartition(".")
    if old is model:  # the script holds the layer itself
        old.weight, old.bias, old.out_features = new.weight, new.bias, classes
    else:
        setattr(model.get_submodule(parent), attribute, new)
    for owner in (model, getattr(model, "config", None)):
        if owner is not None and hasattr(owner, "num_labels"):
            owner.num_labels = classes
    return name


@torch.no_grad()
def resize_embeddings(model: nn.Module, rows: int, name: str = "") -> None:
    get = getattr(model, "get_input_embeddings", None)
    old = model.get_submodule(name) if name or get is None else get()
    new = _with_rows(old, rows)
    if name or get is None:
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, new)
        return
    # New modules, because the model's own resizing changes the old ones in place and cannot be undone.
    model.set_input_embeddings(new)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "vocab_size"):
        config.vocab_size = rows
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if isinstance(head, nn.Linear):
        wide = nn.Linear(head.in_features, rows, bias=head.bias is not None).to(head.weight.device, head.weight.dtype)
        wide.weight = new.weight if head.weight is old.weight else nn.Parameter(_with_more_rows(head.weight, rows))
        if head.bias is not None:
            wide.bias = nn.Parameter(_with_more_rows(head.bias, rows))
        model.set_output_embeddings(wide)


def _with_rows(old: nn.Module, rows: int) -> nn.Embedding:
    assert isinstance(old, nn.Embedding)
    new = nn.Embedding(rows, old.embedding_dim, padding_idx=old.padding_idx).to(old.weight.device, old.weight.dtype)
    new.weight = nn.Parameter(_with_more_rows(old.weight, rows), requires_grad=old.weight.requires_grad)
    return new


def _with_more_rows(values: torch.Tensor, rows: int) -> torch.Tensor:
    """The existing rows plus new ones with the same spread (zeros for a bias)."""
    more = values.new_zeros(rows, *values.shape[1:])
    if values.dim() > 1:
        more.normal_(0.0, float(values.float().std()) or 0.02)
    kept = min(rows, len(values))
    more[:kept] = values[:kept]
    return more


def activate(model: nn.Module, names: Sequence[str]) -> None:
    if torch.is_grad_enabled():
        for name in names:
            model.get_submodule(name).training = True


def resize_input(model: nn.Module, layer: str, size: int) -> None:
    old = model.get_submodule(layer)
    # The constructors of recurrent layers pass on all arguments to that of their common base class.
    kind = nn.RNNBase if isinstance(old, nn.RNNBase) else type(old)
    names = [n for n in inspect.signature(kind.__init__).parameters if n not in ("self", "device", "dtype", "mode")]
    if isinstance(old, nn.RNN):
        names.append("nonlinearity")
    given = {n: getattr(old, n) for n in names if hasattr(old, n)}
    if "bias" in names:
        given["bias"] = old.bias is not None and old.bias is not False
    given[next(n for n in _INPUT_SIZE if hasattr(old, n))] = size
    reference = next(model.parameters())
    _put(model, layer, type(old)(**given).to(reference.device))


def flatten_before(model: nn.Module, layer: str) -> None:
    _put(model, layer, nn.Sequential(nn.Flatten(), model.get_submodule(layer)))


def _put(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, module)


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
