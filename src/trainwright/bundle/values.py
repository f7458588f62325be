"""Writes an expression that makes a value like a given one: of its shape, type and range, with made-up numbers and words.

No framework is imported here: a value is known by its class's name and module.
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.frameworks.packages import SHOWN

# The name of the generator of random numbers in the scripts that are written.
DRAW = "draw"
# Shorter lists are settings, not data.
_SHORTEST_DATA = 8
# Integers and strings with so few distinct values are classes.
_MOST_CLASSES = 50
# Columns of a table, whose ranges are written one by one if one is so many times as wide as another.
_MOST_COLUMNS, _UNEQUAL = 40, 5.0
# Longer literals are no settings.
_LONGEST_LITERAL = 200
# Of a large array, so many numbers are looked at; of a set, so many rows.
_LOOKED_AT, _ROWS = 1_000_000, 64
# A normal distribution has about no number further from its mean than so many deviations.
_FAR = 6.0


def expression(value: Any, rows: int) -> str | None:
    """An expression for a value like this one, with at most so many rows; None: it is no data.

    It may use `np`, `torch`, `pd`, `SimpleNamespace`, `Dataset`, `DatasetDict`, and the generator `draw`.
    """
    with contextlib.suppress(Exception):  # the user's and the libraries' own: a value that cannot be read is left
        return _expression(value, rows)
    return None


def _expression(value: Any, rows: int) -> str | None:
    kind = type(value)
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if isinstance(value, np.ndarray):
        return _array(value, rows) if value.ndim and value.size else None
    if library == "torch" and name == "Tensor":
        return _tensor(value, rows) if value.ndim and value.numel() else None
    if library == "pandas" and name in ("DataFrame", "Series"):
        return _table(value, rows, name)
    if library == "datasets" and name in ("Dataset", "DatasetDict"):
        return (
            _dataset(value, rows)
            if name == "Dataset"
            else _named("DatasetDict", {k: _dataset(v, rows) for k, v in value.items()})
        )
    if isinstance(value, list | tuple) and len(value) >= _SHORTEST_DATA:
        return _list(value, rows)
    if isinstance(value, argument_like := types.SimpleNamespace) or name == "Namespace":
        return (
            f"{argument_like.__name__}({', '.join(f'{k}={v!r}' for k, v in vars(value).items())})"
            if all(map(_is_plain, vars(value).values()))
            else None
        )
    if _is_plain(value):
        return repr(value)
    is_own = library not in (*SHOWN, "tokenizers", "builtins") or kind.__module__.startswith("torch.utils.data.dataset")
    if (
        is_own
        and name not in ("TensorDataset",)
        and hasattr(kind, "__getitem__")
        and hasattr(kind, "__len__")
        and not hasattr(value, "parameters")
    ):
        return _list([value[i] for i in range(min(len(value), _ROWS))], rows, total=len(value))
    return None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return all(map(_is_plain, value)) and len(repr(value)) <= _LONGEST_LITERAL
    if isinstance(value, dict):
        return (
            all(isinstance(k, str) and _is_plain(v) for k, v in value.items()) and len(repr(value)) <= _LONGEST_LITERAL
        )
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return value is None or (
        type(value) in (bool, int, float, str) and is_finite and len(repr(value)) <= _LONGEST_LITERAL
    )


def _array(value: NDArray[Any], rows: int, *, is_item: bool = False) -> str:
    shape = value.shape if is_item else (min(value.shape[0], rows), *value.shape[1:])
    if value.dtype.kind in "OUS":
        return (
            f"np.array({_words([str(v) for v in value.reshape(-1)[:_LOOKED_AT]], math.prod(shape))}).reshape({shape})"
        )
    if value.dtype.kind == "b":
        return f"({DRAW}.random({shape}) < {float(value.mean()):.3g})"
    is_whole = value.dtype.kind in "iu"
    text = _integers(value, shape) if is_whole else _floats(value.astype("float64"), shape)
    usual = "int64" if value.dtype.kind in "iu" else "float64"
    return text if value.dtype.name == usual else f'{text}.astype("{value.dtype.name}")'


def _integers(value: NDArray[Any], shape: tuple[int, ...]) -> str:
    low, high = int(value.min()), int(value.max())
    if low == high:
        return f"np.full({shape}, {low})"
    drawn = f"{DRAW}.integers({low}, {high + 1}, {shape})"
    if value.ndim == 1 and len(value) > 1 and (np.diff(value) >= 0).all():
        return f"np.sort({drawn})"
    few = np.unique(value)
    if len(few) <= min(_MOST_CLASSES, high - low) // 2:
        return f"{DRAW}.choice({few.tolist()}, {shape})"
    return drawn


def _floats(value: NDArray[Any], shape: tuple[int, ...]) -> str:
    flat = value.reshape(-1)[:_LOOKED_AT]
    finite = flat[np.isfinite(flat)]
    text = _finite(value, finite, shape) if finite.size else f"np.zeros({shape})"
    for wrong, seen in (("np.nan", np.isnan(flat)), ("np.inf", np.isinf(flat))):
        if seen.any():
            share = max(float(seen.mean()), 1.5 / math.prod(shape))
            text = f"np.where({DRAW}.random({shape}) < {share:.3g}, {wrong}, {text})"
    return text


def _finite(value: NDArray[Any], finite: NDArray[Any], shape: tuple[int, ...]) -> str:
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        return f"np.full({shape}, {low:.6g})"
    few = np.unique(finite[:10_000])
    if len(few) <= _MOST_CLASSES // 2 and len(few) < finite.size / 2:
        return f"{DRAW}.choice({[float(f'{v:.6g}') for v in few]}, {shape})"
    if value.ndim == 2 and 1 < value.shape[1] <= _MOST_COLUMNS:
        with np.errstate(all="ignore"):
            mean, wide = np.nanmean(value, axis=0), np.nanstd(value, axis=0)
        wide = np.where(np.isfinite(wide), wide, 1.0)
        moving = wide[wide > 0]
        if len(moving) and (moving.max() > _UNEQUAL * moving.min() or np.ptp(mean) > _UNEQUAL * moving.max()):
            of = [[float(f"{v:.3g}") for v in np.nan_to_num(part)] for part in (mean, wide)]
            return f"{DRAW}.normal({of[0]}, {of[1]}, {shape})"
    mean, wide = float(finite.mean()), float(finite.std())
    if (low >= 0 or max(high - mean, mean - low) < 2.5 * wide) and high - low < 12 * wide:
        return f"{DRAW}.uniform({low:.4g}, {high:.4g}, {shape})"
    if max(high - mean, mean - low) > _FAR * 2 * wide:  # a few numbers lie far away
        far = high if high - mean > mean - low else low
        inner = finite[np.abs(finite - mean) < 2 * wide]
        share = max(1 - len(inner) / len(finite), 1.5 / math.prod(shape))
        return f"np.where({DRAW}.random({shape}) < {share:.3g}, {far:.4g}, {DRAW}.normal({inner.mean():.4g}, {inner.std():.4g}, {shape}))"
    return f"{DRAW}.normal({mean:.4g}, {wide:.4g}, {shape})"


def _tensor(value: Any, rows: int, *, is_item: bool = False) -> str | None:
    if value.requires_grad or value.is_sparse:
        return None
    narrow = str(value.dtype) in ("torch.bfloat16", "torch.float16")
    array = (value.detach().cpu().float() if narrow else value.detach().cpu()).numpy()
    return f"torch.as_tensor({_array(array, rows, is_item=is_item)})" + (f".to({value.dtype})" if narrow else "")


def _table(value: Any, rows: int, name: str) -> str | None:
    if name == "Series":
        return f"pd.Series({_array(value.to_numpy(), rows)}, name={value.name!r})"
    columns = {str(k): _array(value[k].to_numpy(), rows) for k in value.columns}
    return f"pd.DataFrame({_as_dict(columns)})"


def _dataset(value: Any, rows: int) -> str | None:
    form = value.format["type"]
    read = value.with_format(None)[: max(rows, _ROWS)]
    columns = {name: _list(list(column), rows) for name, column in read.items()}
    made = _named("Dataset.from_dict", columns)
    return made if made is None or form is None else f'{made}.with_format("{form}")'


def _named(maker: str, parts: Mapping[str, str | None]) -> str | None:
    return None if None in parts.values() else f"{maker}({_as_dict(parts)})"


def _as_dict(parts: Mapping[str, str | None]) -> str:
    return "{" + ", ".join(f"{k!r}: {v}" for k, v in parts.items()) + "}"


def _list(value: Any, rows: int, *, total: int = 0) -> str | None:
    """A list like this one: of numbers, texts, lists of unequal length, or of rows with several parts."""
    count, first = min(total or len(value), rows), value[0]
    if isinstance(first, str):
        return _words(list(value), count)
    if isinstance(first, bool | int | float | np.number) or first is None:
        return (
            f"{_array(np.array(value), count)}.tolist()"
            if total == 0
            else f"{_array(np.resize(np.array(value), count), count)}.tolist()"
        )
    if isinstance(first, list) and first and isinstance(first[0], int | float):
        if len({len(v) for v in value}) == 1:
            return f"{_array(np.array(value), count)}.tolist()"
        return _unequal(value, count)
    one = _item(list(value[:_ROWS]))
    return None if one is None else f"[{one} for _ in range({count})]"


def _unequal(value: Any, count: int) -> str:
    """Lists of unequal length; columns of equal lengths get equal ones, by a seed of their own."""
    found = [len(v) for v in value]
    each = f"np.random.default_rng(1).integers({min(found)}, {max(found) + 1}, {count})"
    numbers = np.concatenate([np.asarray(v) for v in value])
    text = _array(numbers, len(numbers)).replace(f"({len(numbers)},)", "n")
    return f"[{text}.tolist() for n in {each}]"


def _item(values: list[Any]) -> str | None:
    """An expression for one row, by the first rows."""
    first = values[0]
    if isinstance(first, dict):
        parts = {k: _item([v[k] for v in values]) for k in first}
        return None if None in parts.values() else _as_dict(parts)
    if isinstance(first, tuple | list):
        inner = [_item([v[i] for v in values]) for i in range(len(first))]
        return None if None in inner else f"({', '.join(map(str, inner))},)"
    if isinstance(first, str):
        return f"{_words([str(v) for v in values], 1)}[0]"
    if isinstance(first, int | float | np.number):
        return f"{_array(np.array(values), 1)}[0].item()"
    if type(first).__module__.partition(".")[0] == "torch":
        alike = [v for v in values if v.shape == first.shape and v.dtype == first.dtype]
        joined = np.stack([v.detach().cpu().numpy() for v in alike])
        return f"torch.as_tensor({_array(joined, 1)}[0])"
    if isinstance(first, np.ndarray):
        return f"{_array(np.stack([v for v in values if v.shape == first.shape]), 1)}[0]"
    return None


def _words(texts: list[str], count: int) -> str:
    """Made-up texts: as many classes, or as many words."""
    distinct = len(set(texts))
    if distinct <= min(_MOST_CLASSES, max(1, len(texts) // 2)) and max(map(len, texts)) < _MOST_CLASSES:
        return f"{DRAW}.choice({[f'class {i}' for i in range(distinct)]}, {count}).tolist()"
    lengths = [len(t.split()) for t in texts]
    some = "['red', 'green', 'old', 'new', 'tree', 'house', 'runs', 'sleeps']"
    return f"[' '.join({DRAW}.choice({some}, n)) for n in {DRAW}.integers({max(1, min(lengths))}, {max(lengths) + 1}, {count})]"


def imports_for(text: str) -> Iterator[str]:
    """The imports that expressions of this module need."""
    for mark, line in (
        (("np.", f"{DRAW}."), "import numpy as np"),
        (("pd.",), "import pandas as pd"),
        (("torch.",), "import torch"),
        (("SimpleNamespace(",), "from types import SimpleNamespace"),
        (("DatasetDict(",), "from datasets import Dataset, DatasetDict"),
        (("Dataset.from_dict(",), "from datasets import Dataset"),
    ):
        if any(m in text for m in mark):
            yield line
