"""The raw rows of a training set: what the script held before it prepared them.

They are read once a set, when its first batch comes: from the set itself and what it wraps, from their attributes, and from the
variables of the script's functions that are under way. A table counts if it has as many rows as the set.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Floats, Integers
from trainwright.rehearsal.record_parts import RawRows
from trainwright.rehearsal.recorder import Recorder, spread
from trainwright.rehearsal.watch.broken import scope_of

# Rows and numbers a row that are kept of a set; sets that are read; numbers that text is hashed into.
MOST_ROWS, MOST_COLUMNS, MOST_SETS, OF_TEXT = 2000, 64, 4, 256
# Fewer rows tell nothing.
FEWEST_ROWS = 40
# Wrappers around a set, and tables of a scope, that are looked into.
MOST_WRAPPED, MOST_TABLES = 4, 24
# A text column has mostly different texts, of so many characters; with so many different values it is one of categories.
TEXT_LENGTH, TEXT_SHARE, MOST_CATEGORIES = 12, 0.3, 20
# Characters of a text that are read, and the length of their pieces.
MOST_CHARACTERS, PIECE = 1000, 3
# Numbers of one array's row: these are spread over it (a picture).
MOST_OF_ARRAY = 256


class RawTables:
    """Reads the raw rows of each set once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: set[int] = set()

    def look(self, number: int, rows: Any, size: int, tables: Mapping[str, Any]) -> None:
        """Read the raw rows of a set, by its number, unless that was done.

        Args:
            tables: what is known besides to hold raw rows, by name.
        """
        if number in self._seen or len(self._seen) >= MOST_SETS or size < FEWEST_ROWS:
            return
        self._seen.add(number)
        chosen = spread(size, MOST_ROWS)
        columns: dict[str, Floats] = {}
        groups: dict[str, Integers] = {}
        scope = {**tables, **dict(scope_of(sys._getframe(1)))}
        for table, places, is_lone in _tables(rows, chosen, scope):
            groups |= dict(_groups(table, places))
            for name, values in () if is_lone else _columns(table, places):
                wide = sum(one.shape[1] for one in columns.values() if one.shape[1] < OF_TEXT)
                if name not in columns and (values.shape[1] >= OF_TEXT or wide + values.shape[1] <= MOST_COLUMNS):
                    columns[name] = values
                if len(columns) >= MOST_COLUMNS:
                    break
        if columns or groups:
            raw = RawRows(data=number, numbers=chosen, columns=columns, groups=tuple(groups.items()))
            self._recorder.record.raw.append(raw)


def _tables(rows: Any, chosen: Integers, scope: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Integers, bool]]:
    """Tables with as many rows as the set, or as one that it wraps, with the places of the chosen rows in them, and whether it is a
    variable of one number a row."""
    places, tried = chosen, 0
    variables = sorted(
        ((k, v, _is_lone(v)) for k, v in scope.items() if not k.startswith("__")), key=lambda one: one[2]
    )
    for _ in range(MOST_WRAPPED):
        size = len(rows)
        held = [(name, value, False) for name, value in [(type(rows).__name__, rows), *_attributes(rows)]]
        for name, value, is_lone in [*held, *variables]:
            table = _table(name, value, size)
            if table and tried < MOST_TABLES:
                tried += 1
                yield table, places, is_lone
        inner = getattr(rows, "dataset", None)
        if inner is None or not hasattr(inner, "__len__"):
            return
        indices = getattr(rows, "indices", None)
        if indices is not None:
            places = np.asarray([int(indices[int(place)]) for place in places], dtype=np.int64)
        elif len(inner) != size:
            return
        rows = inner


def _attributes(rows: Any) -> list[tuple[str, Any]]:
    return [] if _is_table_of_datasets(rows) else list(getattr(rows, "__dict__", {}).items())


def _is_lone(value: Any) -> bool:
    """Whether a variable has one number a row: mostly it is a label in another form, a weight or an order."""
    if isinstance(value, list):
        return bool(value) and not isinstance(value[0], str)
    return ((isinstance(value, np.ndarray) and value.dtype.kind != "O") or _is_tensor(value)) and value.ndim == 1


def _is_table_of_datasets(value: Any) -> bool:
    """Whether it is a `datasets.Dataset`."""
    module = sys.modules.get("datasets")
    return module is not None and isinstance(value, module.Dataset)


def _is_frame(value: Any) -> bool:
    """Whether it is a pandas DataFrame."""
    module = sys.modules.get("pandas")
    return module is not None and isinstance(value, module.DataFrame)


def _is_tensor(value: Any) -> bool:
    module = sys.modules.get("torch")
    return module is not None and type(value) is module.Tensor and value.device.type == "cpu"


def _table(name: str, value: Any, size: int) -> dict[str, Any]:
    """The columns of a table of so many rows; none: it is no such table."""
    if _is_table_of_datasets(value) or _is_frame(value):
        if len(value) != size:
            return {}
        if _is_frame(value):
            return {str(key): value.iloc[:, number] for number, key in enumerate(value.columns[:MOST_COLUMNS])}
        return {str(key): (value, key) for key in value.column_names[:MOST_COLUMNS]}
    if isinstance(value, np.ndarray) or _is_tensor(value):
        return {name: value} if value.ndim and len(value) == size else {}
    if isinstance(value, list) and len(value) == size and isinstance(value[0], str | int | float):
        return {name: value}
    if type(value) is dict and 0 < len(value) <= MOST_COLUMNS:
        return {
            str(key): inner
            for key, inner in value.items()
            if isinstance(inner, (list, np.ndarray)) and np.ndim(inner[:1]) and len(inner) == size
        }
    return {}


def _columns(table: dict[str, Any], places: Integers) -> Iterator[tuple[str, Floats]]:
    """Each column as numbers, by a name; one of several numbers a row is several columns."""
    for name, held in table.items():
        values = _read(held, places)
        if values is None or len(values) != len(places):
            continue
        if values.dtype.kind in "biuf":
            flat = values.reshape(len(values), -1).astype(np.float32)
            if flat.shape[1] > MOST_COLUMNS:
                flat = flat[:, spread(flat.shape[1], MOST_OF_ARRAY)]
                if flat.shape[1] < OF_TEXT:
                    flat = np.pad(flat, ((0, 0), (0, OF_TEXT - flat.shape[1])))
                yield name, flat
                continue
            for number in range(flat.shape[1]):
                yield f"{name}[{number}]" if flat.shape[1] > 1 else name, flat[:, number : number + 1]
        elif values.ndim == 1:
            found = _words(values)
            if found is not None:
                yield name, found


def _groups(table: dict[str, Any], places: Integers) -> Iterator[tuple[str, Integers]]:
    """Each column of names or whole numbers that is neither of categories nor different in most rows."""
    for name, held in table.items():
        values = _read(held, places)
        if values is None or values.ndim != 1 or len(values) != len(places) or values.dtype.kind not in "OUiuf":
            continue
        if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.round(values)).all()):
            continue
        texts = [str(value if isinstance(value, str) else int(value)) for value in values.tolist() if value is not None]
        if MOST_CATEGORIES / 2 < len(set(texts)) <= len(places) / 2 and len(texts) == len(places):
            yield name, np.array([zlib.crc32(text.encode("utf-8", "replace")) for text in texts], dtype=np.int64)


def _read(held: Any, places: Integers) -> NDArray[Any] | None:
    """The values at these places."""
    if isinstance(held, tuple):  # a column of a `datasets.Dataset`, past its transforms
        data, key = held
        if data._indices is not None:
            places = np.asarray(data._indices.column(0).take(places).to_pylist(), dtype=np.int64)
        return _array(data.data.column(key).take(places).to_pylist())
    if hasattr(held, "iloc"):
        return _array(held.iloc[places].tolist())
    if isinstance(held, list):
        return _array([held[place] for place in places.tolist()])
    if isinstance(held, np.ndarray):
        return held[places]
    found: NDArray[Any] = held.detach()[places.tolist()].float().numpy()
    return found


def _array(values: list[Any]) -> NDArray[Any] | None:
    """Numbers or texts as an array; None: they are neither, or rows of different lengths."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return np.array(["" if value is None else str(value) for value in values], dtype=object)
    if not isinstance(first, (bool, int, float, list)):
        return None
    if isinstance(first, list):
        if len({len(value) if isinstance(value, list) else -1 for value in values}) > 1:
            return None
        nested = np.array(values, dtype=object)
        return nested.astype(np.float64) if all(isinstance(one, (int, float)) for one in nested.ravel()) else None
    return (
        np.array(values, dtype=np.float64)
        if all(one is None or isinstance(one, (bool, int, float)) for one in values)
        else None
    )


def _words(values: NDArray[Any]) -> Floats | None:
    """Categories as zeros and ones, texts as counts of their pieces; None: something between, as names and keys."""
    texts = [str(value) for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return None
    different = sorted(set(texts))
    if len(different) <= MOST_CATEGORIES:
        return np.array([[text == one for one in different] for text in texts], dtype=np.float32)
    length = sum(map(len, texts)) / len(texts)
    if length < TEXT_LENGTH or len(different) < TEXT_SHARE * len(texts):
        return None
    counts = np.zeros((len(texts), OF_TEXT), np.float32)
    for row, text in enumerate(texts):
        cut = text[:MOST_CHARACTERS].lower()
        for begin in range(max(len(cut) - PIECE + 1, 1)):
            counts[row, zlib.crc32(cut[begin : begin + PIECE].encode("utf-8", "replace")) % OF_TEXT] += 1
    return np.log1p(counts)
