"""A script's values where its training begins: in outline (class, shape, type and range, without the numbers), and as
expressions that make values like them, with made-up numbers and words.

No framework is imported here: a value is known by its class's name and module.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from trainwright.errors import TrainwrightError
from trainwright.frameworks.packages import SHOWN

Values = dict[str, dict[str, str]]
"""By name: the expression (`made`), the outline, and the outline with the first rows (`rows`); each if there is one."""

# As many rows as the script has, up to a usual set's, so that a script that cuts it at a row's number still runs.
ROWS = 20_000
# The name of the generator of random numbers in the scripts that are written.
DRAW = "draw"
IMPORTS = (
    "import numpy as np", "import pandas as pd", "import torch", "from types import SimpleNamespace",
    "from datasets import Dataset, DatasetDict", f"{DRAW} = np.random.default_rng(0)",
)  # fmt: skip
"""What expressions may use."""
# Shorter lists are settings, not data.
_SHORTEST_DATA = 8
# Integers and strings with so few distinct values are classes.
_MOST_CLASSES = 50
# Columns of a table, whose ranges are written one by one if one is so many times as wide as another.
_MOST_COLUMNS, _UNEQUAL = 40, 5.0
# Longer literals are no settings.
_LONGEST_LITERAL = 200
# Of a large array, so many numbers are looked at; of a set, so many rows.
_LOOKED_AT, _ROWS_LOOKED_AT = 1_000_000, 64
# A uniform distribution is 3.5 deviations wide.
_FAR = 4.5
# First rows that are shown on request, and the length of such a text.
_ROWS, _LONGEST = 3, 300


def call_to_tell(names: Sequence[str]) -> str:
    """The statement of a script's copy that ends it, and tells the values of these names."""
    return f"__import__({__name__!r}, fromlist=['x']).tell_values(globals(), {list(names)})"


def tell_values(known: Mapping[str, Any], names: Sequence[str]) -> NoReturn:
    """End the script's copy that calls this: the run's record holds what is said by an exception of ours."""
    raise TrainwrightError(json.dumps({name: told for name in names if name in known and (told := _told(known[name]))}))


def _told(value: Any) -> dict[str, str]:
    made, told = expression(value), outline(value)
    return {**({"made": made} if made else {}), **({"outline": told, "rows": first_rows(value)} if told else {})}


def outline(value: Any) -> str:
    """What a value is, in a few words; empty if it is no data."""
    with contextlib.suppress(Exception):  # the user's and the libraries' own: a value that cannot be read is left out
        return _outline(value)
    return ""


def first_rows(value: Any) -> str:
    """The outline, and the value's first rows."""
    with contextlib.suppress(Exception):  # as above
        is_table = hasattr(value, "iloc") and hasattr(value, "columns")
        rows = [value.iloc[i].to_dict() if is_table else value[i] for i in range(min(_ROWS, len(value)))]
        return f"{_outline(value)}; begins {' '.join(repr(rows).split())[:_LONGEST]}"
    return outline(value)


def _outline(value: Any) -> str:
    name = type(value).__name__
    if _is_tensor(value) or isinstance(value, np.ndarray):
        numbers = value.detach().cpu().float().numpy() if _is_tensor(value) else value
        kind = str(value.dtype).rpartition(".")[2]
        return f"{name} {tuple(value.shape)} {kind}{_range(numbers)}" if value.ndim else ""
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        columns = (f"{k} {value[k].dtype}{_range(value[k].to_numpy())}" for k in value.columns)
        return f"{name} of {len(value)} rows: {', '.join(columns)}"
    if hasattr(value, "features") and hasattr(value, "with_format"):
        return f"{name} of {len(value)} rows: {', '.join(f'{k} {v}' for k, v in value.features.items())}"
    is_set = hasattr(value, "__getitem__") and hasattr(value, "__len__") and not hasattr(value, "parameters")
    if isinstance(value, str | dict) or not is_set or len(value) < _SHORTEST_DATA:
        return ""
    return f"{name} of {len(value)}: {_part(value[0])}"


def _part(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_part(v)}" for k, v in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(map(_part, value))})"
    return _outline(value) or type(value).__name__


def _range(value: Any) -> str:
    if value.dtype.kind not in "iuf" or not value.size:
        return ""
    finite = value[np.isfinite(value)]
    missing = value.size - finite.size
    told = f", {missing} not finite" if missing else ""
    return f", {finite.min():.4g} to {finite.max():.4g}{told}" if finite.size else told


def expression(value: Any, rows: int = ROWS) -> str | None:
    """An expression for a value like this one, with at most so many rows; None: it is no data."""
    with contextlib.suppress(Exception):  # the user's and the libraries' own: a value that cannot be read is left
        return _setting(value) or _data(value, rows)
    return None


def _setting(value: Any) -> str | None:
    """A number, a text, a short list or a namespace of these, as it is."""
    if type(value).__name__ in ("SimpleNamespace", "Namespace"):
        given = {k: _setting(v) for k, v in vars(value).items()}
        return None if None in given.values() else f"SimpleNamespace({', '.join(f'{k}={v}' for k, v in given.items())})"
    text = "" if isinstance(value, list | tuple) and len(value) >= _SHORTEST_DATA else repr(value)
    with contextlib.suppress(ValueError, SyntaxError):  # it is no literal
        return text if len(text) <= _LONGEST_LITERAL and ast.literal_eval(text) == value else None
    return None


def _data(value: Any, rows: int) -> str | None:
    kind = type(value)
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if name == "DatasetDict":
        return _named("DatasetDict", {k: _data(v, rows) for k, v in value.items()})
    count = min(len(value), rows)
    if library == "pandas" and name == "DataFrame":
        return _named("pd.DataFrame", {str(k): _column(value[k].to_numpy(), count) for k in value.columns})
    if library == "pandas" and name == "Series":
        return f"pd.Series({_column(value.to_numpy(), count)}, name={value.name!r})"
    if library == "datasets" and name == "Dataset":
        read, form = value.with_format(None)[: max(count, _ROWS_LOOKED_AT)], value.format["type"]
        made = _named("Dataset.from_dict", {k: _column(list(column), count) for k, column in read.items()})
        return made if made is None or form is None else f'{made}.with_format("{form}")'
    if isinstance(value, list | tuple) and count < _SHORTEST_DATA:
        return None
    if isinstance(value, np.ndarray | list | tuple) or (library == "torch" and name == "Tensor"):
        return _column(value, count) if count else None
    is_own = library not in (*SHOWN, "tokenizers", "builtins") or kind.__module__.startswith("torch.utils.data.dataset")
    if is_own and name != "TensorDataset" and hasattr(kind, "__getitem__") and not hasattr(value, "parameters"):
        return _column([value[i] for i in range(min(len(value), _ROWS_LOOKED_AT))], count)
    return None


def _column(values: Any, count: int) -> str | None:
    """So many values like these: numbers, texts, arrays, or rows of several parts."""
    first = values[0]
    if isinstance(values, np.ndarray):
        return _array(values, (count, *values.shape[1:]))
    if _is_tensor(values):
        return _tensor(values, count)
    if isinstance(first, str):
        return f"{_array(np.array(values, dtype=object), (count,))}.tolist()"
    if isinstance(first, dict):
        rows = _column([tuple(v[k] for k in first) for v in values], count)
        return rows and f"[dict(zip({list(first)}, row)) for row in {rows}]"
    if _is_tensor(first) or isinstance(first, np.ndarray):
        maker, arrays = "torch.as_tensor" if _is_tensor(first) else "np.array", [np.asarray(v) for v in values]
        alike = len({v.shape for v in arrays}) == 1
        made = _array(np.stack(arrays), (count, *first.shape)) if alike else _unequal(arrays, count)
        return f"[{maker}(row) for row in {made}]"
    if isinstance(first, list) and first and isinstance(first[0], int | float):
        if len({len(v) for v in values}) > 1:
            return _unequal(values, count)
        return f"{_array(np.array(values), (count, len(first)))}.tolist()"
    if isinstance(first, list | tuple):
        columns = [_column([v[i] for v in values], count) for i in range(len(first))]
        return None if None in columns else f"list(zip({', '.join(map(str, columns))}))"
    if isinstance(first, bool | int | float | np.number) or first is None:
        return f"{_array(np.array(values), (count,))}.tolist()"
    return None


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _tensor(value: Any, count: int) -> str | None:
    if value.requires_grad or value.is_sparse:
        return None
    narrow = str(value.dtype) in ("torch.bfloat16", "torch.float16")
    array = (value.detach().cpu().float() if narrow else value.detach().cpu()).numpy()
    return f"torch.as_tensor({_column(array, count)})" + (f".to({value.dtype})" if narrow else "")


def _array(value: NDArray[Any], shape: tuple[int, ...]) -> str:
    flat, kind = value.reshape(-1)[:_LOOKED_AT], value.dtype.kind
    if kind in "OUS":
        return f"np.array({_words([str(v) for v in flat], math.prod(shape))}).reshape({shape})"
    if kind == "b":
        return f"({DRAW}.random({shape}) < {float(value.mean()):.3g})"
    few = np.unique(flat[np.isfinite(flat)])
    if len(few) <= _MOST_CLASSES // 2 and len(few) < max(2, flat.size / 2):
        text = f"{DRAW}.choice({[float(f'{v:.6g}') if kind == 'f' else int(v) for v in few] or [0.0]}, {shape})"
    elif kind in "iu":
        text = f"{DRAW}.integers({few[0]}, {few[-1] + 1}, {shape})"
    else:
        text = _floats(value.astype("float64"), shape)
    for wrong, seen in (("np.nan", np.isnan(flat)), ("np.inf", np.isinf(flat))):
        if seen.any():
            share = max(float(seen.mean()), 1.5 / math.prod(shape))
            text = f"np.where({DRAW}.random({shape}) < {share:.3g}, {wrong}, {text})"
    return text if value.dtype.name in ("int64", "float64") else f'{text}.astype("{value.dtype.name}")'


def _floats(value: NDArray[Any], shape: tuple[int, ...]) -> str:
    """Uniform between the ends if nothing lies far out, otherwise normal; by column where columns differ much."""
    value = np.where(np.isfinite(value), value, np.nan)
    low, high, mean, wide = (float(f(value)) for f in (np.nanmin, np.nanmax, np.nanmean, np.nanstd))
    if value.ndim == 2 and 1 < value.shape[1] <= _MOST_COLUMNS:
        means, widths = np.nan_to_num(np.nanmean(value, axis=0)), np.nan_to_num(np.nanstd(value, axis=0))
        if widths.max() > _UNEQUAL * widths.min() or np.ptp(means) > _UNEQUAL * widths.max():
            of = [[float(f"{v:.3g}") for v in part] for part in (means, widths)]
            return f"{DRAW}.normal({of[0]}, {of[1]}, {shape})"
    if low >= 0 or high - low < _FAR * wide:
        return f"{DRAW}.uniform({low:.4g}, {high:.4g}, {shape})"
    return f"{DRAW}.normal({mean:.4g}, {wide:.4g}, {shape})"


def _named(maker: str, parts: Mapping[str, str | None]) -> str | None:
    inside = ", ".join(f"{k!r}: {v}" for k, v in parts.items())
    return None if None in parts.values() else f"{maker}({{{inside}}})"


def _unequal(value: Sequence[Any], count: int) -> str:
    """Lists of unequal length; columns of equal lengths get equal ones, by a seed of their own."""
    found = [len(v) for v in value]
    each = f"np.random.default_rng(1).integers({min(found)}, {max(found) + 1}, {count})"
    numbers = np.concatenate([np.asarray(v) for v in value])
    text = _array(numbers, (len(numbers),)).replace(f"({len(numbers)},)", "n")
    return f"[{text}.tolist() for n in {each}]"


def _words(texts: list[str], count: int) -> str:
    """Made-up texts: as many classes, or as many words."""
    distinct = len(set(texts))
    if distinct <= min(_MOST_CLASSES, max(1, len(texts) // 2)) and max(map(len, texts)) < _MOST_CLASSES:
        return f"{DRAW}.choice({[f'class {i}' for i in range(distinct)]}, {count})"
    lengths = [len(t.split()) for t in texts]
    some = "['red', 'green', 'old', 'new', 'tree', 'house', 'runs', 'sleeps']"
    each = f"{DRAW}.integers({max(1, min(lengths))}, {max(lengths) + 1}, {count})"
    return f"[' '.join({DRAW}.choice({some}, n)) for n in {each}]"
