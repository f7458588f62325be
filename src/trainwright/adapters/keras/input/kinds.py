"""The kind of data fit was given, and reading data that form their own batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from trainwright.adapters.keras.input import tf_data
from trainwright.adapters.keras.input.nested_values import count_rows
from trainwright.adapters.keras.input.sources import Arrays, Drawn, Refused, Source, Stream, are_arrays, batch_size_of


def source_of(
    x: Any, y: Any, weight: Any, *, batch_size: int | None, shuffle: Any, steps: int | None, floats: str, listed: bool
) -> Source:
    """The source that reads the data fit was given.

    Args:
        listed: fit treats any iterator as a generator, as tf_keras does.
    """
    if are_arrays(x, y, weight):
        size = batch_size or batch_size_of(count_rows([x, y]) or 0, steps)
        return Arrays(x, y, weight, batch_size=size, shuffle=shuffle, floats=floats)
    kinds = {parent.__name__: parent.__module__ for parent in type(x).__mro__}
    if "tensorflow.python" in kinds.get("DatasetV2", ""):
        return tf_data.source_of(x)
    if "keras" in kinds.get("PyDataset", "") or "keras" in kinds.get("Sequence", ""):
        return _of_batches_by_number(x, shuffle)
    if kinds.get("DataLoader", "").startswith("torch.utils.data"):
        return _of_loader(x)
    if isinstance(x, GeneratorType) or (listed and hasattr(x, "__next__")):
        return Drawn(x)
    return Refused(x)


def _of_batches_by_number(data: Any, shuffle: Any) -> Stream:
    """A PyDataset (a Sequence in tf_keras): batches by index; fit draws them in random order if it shuffles."""
    try:
        count = data.num_batches if hasattr(type(data), "num_batches") else len(data)
        endless = count is None  # how a PyDataset signals that it has no end
    except (NotImplementedError, TypeError):
        count, endless = None, False

    def begin() -> Iterator[Any]:
        return (data[i] for i in (itertools.count() if count is None else range(count)))

    # Whole batches are shuffled: their rows stay together unless the user's code mixes them.
    mixes = any(_is_own(data, name) for name in ("on_epoch_end", "on_epoch_begin"))
    return Stream(
        "PyDataset",
        begin,
        batches=count,
        shuffled=None if mixes and shuffle else False,
        owners=[data],
        last=(lambda: data[count - 1]) if count else None,
        endless=endless,
    )


def _is_own(data: Any, name: str) -> bool:
    """Whether the user's class overrides a method."""
    method = getattr(type(data), name, None)
    return method is not None and "keras" not in str(method.__module__).split(".")[0]


def _of_loader(loader: Any) -> Stream:
    """A torch DataLoader: read as in training, with its samplers' generators restored afterwards."""
    rows = len(loader.dataset) if hasattr(loader.dataset, "__len__") else None
    sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    kind = type(sampler).__name__
    shuffled = None if sampler is None else "Sequential" not in kind and "Infinite" not in kind
    batches = len(loader) if rows is not None else None
    owners = [o for o in (loader, loader.sampler, loader.batch_sampler, sampler) if o is not None]
    kept = (
        rows if not loader.drop_last or rows is None else batches * loader.batch_size if batches is not None else rows
    )
    return Stream(
        "DataLoader",
        lambda: iter(loader),
        rows=kept,
        batches=batches,
        batch_size=loader.batch_size,
        shuffled=shuffled,
        owners=owners,
    )
