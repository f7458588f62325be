"""Stage 1, dataset: a sample of the items, and a census of all labels, as the loader will read them."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from trainwright.core.finding import Failure
from trainwright.core.stage import Facts, Stage

SAMPLED_ITEMS = 512
CENSUS_LABELS = 50_000
# A label column with more distinct integers than this is a count or an identifier, not a class.
MOST_CLASSES = 1_000
IGNORED_LABEL = -100  # torch.nn.functional.cross_entropy's default ignore_index


@dataclass(frozen=True, kw_only=True)
class Split:
    """What was read of a training or evaluation set: the input of this stage's measuring."""

    name: str
    rows: int | None
    """None: iterable, of unknown length."""
    items: Sequence[Mapping[str, Any]] = ()
    """Evenly spaced items (the first ones of an iterable set); keys are column names, or "0", "1" of a tuple."""
    indices: Sequence[int] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Whole columns (or their first part) where they could be read without reading every item."""
    read: int = 0
    """How many rows the columns hold."""
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failure: Failure | None = None
    failed_row: int | None = None
    kind: str = "map"
    """map or iterable."""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """One column (or position of a tuple) of the items."""

    name: str
    kind: str
    """text, integer, float, boolean, numbers (a list or array of them), texts, missing, other."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Of the first item."""
    same_shape: bool = True
    shortest: int | None = None
    longest: int | None = None
    median_length: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    feature_deviations: tuple[float, ...] = ()
    """Standard deviation of each feature over the sampled rows, for rows that are vectors of one size up to 4096."""
    non_finite: int = 0
    """How many values are NaN or infinite, over `counted` rows."""
    non_finite_rows: tuple[int, ...] = ()
    """The first five such rows."""
    missing: int = 0
    """How many rows hold None."""
    counted: int = 0
    example: str = ""


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """The census of the label column."""

    column: str
    kind: str
    """class (one integer a row), tokens (integers per position), real (a number or a vector of them a row),
    multi-hot (a vector of 0 and 1), text."""
    census: Mapping[int | float | str, int] = field(default_factory=dict)
    """How often each value occurs, without the ignored -100; empty for real labels."""
    first_rows: Mapping[int | float | str, int] = field(default_factory=dict)
    """The first row that holds each value."""
    counted: int = 0
    rows_read: int = 0
    ignored: int = 0
    """How many labels are -100."""
    dtype: str = ""
    class_names: tuple[str, ...] = ()
    mean_run: float = 0.0
    """Mean number of equal labels in a row, over the rows in their order."""
    expected_run: float = 0.0
    """What that would be if the rows were shuffled."""
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    per_row: int = 1
    """Labels a row (median), for tokens and vectors."""

    @property
    def classes(self) -> int:
        """How many different values occur."""
        return len(self.census)

    @property
    def majority_share(self) -> float:
        """The share of the most frequent value."""
        return max(self.census.values()) / sum(self.census.values()) if self.census else 0.0

    @property
    def chance_nats(self) -> float | None:
        """ln C: the loss in nats of a uniform guess over the C values that occur."""
        return math.log(len(self.census)) if len(self.census) > 1 else None

    @property
    def entropy_nats(self) -> float | None:
        """The loss in nats of always predicting the class frequencies."""
        total = sum(self.census.values())
        return -sum(n / total * math.log(n / total) for n in self.census.values()) if total else None


@dataclass(frozen=True, kw_only=True)
class SplitFacts:
    """A training or evaluation set."""

    name: str
    rows: int | None
    kind: str = "map"
    sampled: int = 0
    columns: tuple[ColumnFacts, ...] = ()
    labels: LabelFacts | None = None
    failure: Failure | None = None
    failed_row: int | None = None
    hashes: frozenset[int] = frozenset()
    """Hashes of the inputs of each row that was read (labels left out)."""
    hashed: int = 0
    hashed_all: bool = False

    def column(self, name: str) -> ColumnFacts | None:
        """The column of this name."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The names of columns of raw text."""
        return tuple(c.name for c in self.columns if c.kind == "text")


@dataclass(frozen=True, kw_only=True)
class Lookalike:
    """An object in the script's scope that has the same rows, with what the model takes."""

    expression: str
    """How the script reaches it: `tokenized_datasets["train"]`."""
    columns: tuple[str, ...]
    split: str


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """The tokenizer in reach of the script."""

    expression: str
    size: int
    """len(tokenizer): vocabulary with added tokens."""
    pad_id: int | None
    eos_id: int | None
    unk_id: int | None
    longest_input: int | None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class DatasetFacts(Facts):
    """The training and evaluation sets as the loader will read them."""

    stage = Stage.DATASET
    train: SplitFacts
    evaluation: SplitFacts | None = None
    accepts: tuple[str, ...] = ()
    """The names of the arguments that the model's forward takes, in order."""
    lookalikes: tuple[Lookalike, ...] = ()
    tokenizer: TokenizerFacts | None = None
    decoded: tuple[str, ...] = ()
    """A few training rows as the tokenizer reads them back."""
    shuffles: bool | None = None
    """Whether the training loader shuffles; None where it cannot be told."""
    drops_last: bool = False
    batch_size: int = 0
    overlap: int = 0
    """How many evaluation rows have the same inputs as a training row."""

    @property
    def splits(self) -> tuple[SplitFacts, ...]:
        """The sets that there are."""
        return (self.train, self.evaluation) if self.evaluation else (self.train,)


def measure_split(split: Split, label_names: Sequence[str], *, seconds: float = 4.0) -> SplitFacts:
    """Return the facts of a set that was read.

    Args:
        label_names: the columns that may hold the labels, the likeliest first.
        seconds: how long the hashing of rows may take.
    """
    names = list(dict.fromkeys([*split.columns, *(k for item in split.items for k in item)]))
    label = next((n for n in label_names if n in names), None)
    rows = split.columns if split.columns else {}
    columns = tuple(_measure_column(n, rows.get(n), split) for n in names)
    labels = None
    if label is not None:
        values = rows.get(label)
        values = values if values is not None else [item.get(label) for item in split.items]
        labels = measure_labels(label, values, split.class_names.get(label, ()))
    hashes, hashed = _hash_rows(split, label, seconds)
    return SplitFacts(
        name=split.name,
        rows=split.rows,
        kind=split.kind,
        sampled=len(split.items),
        columns=columns,
        labels=labels,
        failure=split.failure,
        failed_row=split.failed_row,
        hashes=frozenset(hashes),
        hashed=hashed,
        hashed_all=split.rows is not None and hashed >= split.rows,
    )


def measure_labels(column: str, values: Sequence[Any], class_names: Sequence[str] = ()) -> LabelFacts:
    """Return the census of a label column, of at most CENSUS_LABELS rows."""
    values = [v for v in _plain_values(values[:CENSUS_LABELS]) if v is not None]
    base: dict[str, Any] = {"column": column, "rows_read": len(values), "class_names": tuple(class_names)}
    if not values:
        return LabelFacts(kind="missing", **base)
    if isinstance(values[0], str):
        return LabelFacts(kind="text", census=Counter(values), counted=len(values), dtype="text",
                          first_rows=_first_rows(values), **base)  # fmt: skip
    arrays = [np.asarray(v) for v in values]
    if arrays[0].dtype.kind in "OUS":
        return LabelFacts(kind="text", counted=len(values), dtype="text", **base)
    flat = np.concatenate([a.reshape(-1) for a in arrays]) if arrays[0].ndim else np.asarray(values)
    base |= {"dtype": str(flat.dtype), "per_row": int(median(a.size for a in arrays))}
    live = flat[flat != IGNORED_LABEL] if flat.dtype.kind in "iu" else flat
    finite = live[np.isfinite(live)] if live.dtype.kind == "f" else live
    if finite.size:
        base |= {"minimum": float(finite.min()), "maximum": float(finite.max()),
                 "mean": float(finite.mean()), "deviation": float(finite.std())}  # fmt: skip
    one_a_row = arrays[0].ndim == 0 or (arrays[0].size == 1 and max(a.size for a in arrays) == 1)
    whole = finite.size > 0 and bool(np.all(finite == np.round(finite)))
    distinct = np.unique(finite)
    if one_a_row and whole and distinct.size <= min(MOST_CLASSES, max(2, finite.size // 2 + 1)):
        kind = "class"
    elif not one_a_row and distinct.size <= 2 and set(distinct.tolist()) <= {0, 1} and _same_size(arrays):
        kind = "multi-hot"
    elif not one_a_row and flat.dtype.kind in "iu":
        kind = "tokens"
    else:
        return LabelFacts(kind="real", counted=int(flat.size), **base)
    counts = np.unique(finite, return_counts=True)
    census = {_number(v): int(n) for v, n in zip(*counts)}
    runs = _runs(flat) if kind == "class" else (0.0, 0.0)
    return LabelFacts(
        kind=kind,
        census=census,
        first_rows=_first_rows([_number(v) for v in flat.tolist()]) if kind == "class" else {},
        counted=int(live.size),
        ignored=int(flat.size - live.size),
        mean_run=runs[0],
        expected_run=runs[1],
        **base,
    )


def overlap(train: SplitFacts, evaluation: SplitFacts | None) -> int:
    """How many distinct evaluation rows have inputs that also occur in training."""
    return len(train.hashes & evaluation.hashes) if evaluation else 0


def _measure_column(name: str, values: Sequence[Any] | None, split: Split) -> ColumnFacts:
    whole = values is not None
    values = values if values is not None else [item.get(name) for item in split.items]
    rows: Sequence[int] = range(len(values)) if whole else split.indices
    present = [v for v in _plain_values(values[:CENSUS_LABELS]) if v is not None]
    base: dict[str, Any] = {"name": name, "counted": len(values), "missing": sum(v is None for v in values)}
    if not present:
        return ColumnFacts(kind="missing", **base)
    first = present[0]
    base["example"] = _shorten(first)
    if isinstance(first, str):
        sizes = [len(v) for v in present if isinstance(v, str)]
        return ColumnFacts(kind="text", dtype="text", **base, **_lengths(sizes))
    if isinstance(first, (list, tuple)) and first and isinstance(first[0], str):
        return ColumnFacts(kind="texts", dtype="text", **base, **_lengths([len(v) for v in present]))
    try:
        arrays = [np.asarray(v) for v in present]
    except ValueError:
        return ColumnFacts(kind="other", dtype=type(first).__name__, **base)
    if arrays[0].dtype.kind not in "iufb":
        return ColumnFacts(kind="other", dtype=type(first).__name__, **base)
    return _measure_numbers(arrays, values, rows, base)


def _measure_numbers(
    arrays: list[np.ndarray], values: Sequence[Any], rows: Sequence[int], base: dict[str, Any]
) -> ColumnFacts:
    shape = arrays[0].shape
    kind = "numbers" if shape else {"b": "boolean", "f": "float"}.get(arrays[0].dtype.kind, "integer")
    same = _same_shape(arrays)
    flat = np.concatenate([a.reshape(-1) for a in arrays[:SAMPLED_ITEMS]]) if shape else np.asarray(arrays)
    finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
    statistics: dict[str, Any] = {}
    if finite.size:
        wide = finite.astype(np.float64)
        statistics = {"minimum": float(wide.min()), "maximum": float(wide.max()),
                      "mean": float(wide.mean()), "deviation": float(wide.std())}  # fmt: skip
    if same and len(shape) == 1 and 1 < shape[0] <= 4096 and len(arrays) > 1:
        table = np.stack(arrays[:SAMPLED_ITEMS]).astype(np.float64)
        statistics["feature_deviations"] = tuple(float(x) for x in np.nanstd(table, axis=0))
    bad = [(i, int((~np.isfinite(a)).sum())) for i, a in _numbered(values, rows) if a.dtype.kind == "f"]
    bad = [(i, n) for i, n in bad if n]
    return ColumnFacts(
        kind=kind,
        dtype=str(arrays[0].dtype),
        shape=shape,
        same_shape=same,
        non_finite=sum(n for _, n in bad),
        non_finite_rows=tuple(i for i, _ in bad[:5]),
        **(_lengths([len(a) for a in arrays]) if shape else {}),
        **statistics,
        **base,
    )


def _numbered(values: Sequence[Any], rows: Sequence[int]) -> Iterable[tuple[int, np.ndarray]]:
    return ((row, np.asarray(v)) for row, v in zip(rows, values) if v is not None)


def _plain_values(values: Sequence[Any]) -> list[Any]:
    """Torch tensors and the like as numpy arrays; scalars as they are."""
    return [v.numpy() if hasattr(v, "numpy") and hasattr(v, "detach") else v for v in values]


def _hash_rows(split: Split, label: str | None, seconds: float) -> tuple[set[int], int]:
    """Hashes of the inputs: of whole columns where they are at hand, else of the sampled items."""
    names = [n for n in split.columns if n != label and n not in ("idx", "id", "label", "labels")]
    texts = [n for n in names if len(split.columns[n]) and isinstance(split.columns[n][0], str)]
    chosen = texts or names
    started, hashes, count = time.monotonic(), set(), 0
    source: Iterable[tuple[Any, ...]]
    if chosen and "input_ids" in chosen:
        chosen = ["input_ids"]
    if chosen:
        source = zip(*(split.columns[n] for n in chosen))
    else:
        source = (tuple(v for k, v in item.items() if k != label) for item in split.items)
    for count, row in enumerate(source, 1):
        hashes.add(_hash(row))
        if count % 1000 == 0 and time.monotonic() - started > seconds:
            break
    return hashes, count


def _hash(values: tuple[Any, ...]) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        if isinstance(value, str):
            digest.update(value.strip().encode("utf-8", "replace"))
        else:
            array = np.ascontiguousarray(_plain_values([value])[0])
            digest.update(array.tobytes() if array.dtype != object else repr(value).encode())
        digest.update(b"\x1f")
    return int.from_bytes(digest.digest(), "big")


def _runs(labels: np.ndarray) -> tuple[float, float]:
    """Mean run length as it is, and as it would be if the labels were shuffled: 1 / (1 - sum p^2)."""
    if labels.size < 2:
        return 1.0, 1.0
    runs = 1 + int((labels[1:] != labels[:-1]).sum())
    shares = np.unique(labels, return_counts=True)[1] / labels.size
    same = float((shares**2).sum())
    return labels.size / runs, labels.size / (1 + (labels.size - 1) * (1 - same))


def _first_rows(values: Sequence[Any]) -> dict[Any, int]:
    seen: dict[Any, int] = {}
    for row, value in enumerate(values):
        seen.setdefault(value, row)
    return seen


def _lengths(sizes: list[int]) -> dict[str, Any]:
    return {"shortest": min(sizes), "longest": max(sizes), "median_length": float(median(sizes))}


def _same_shape(arrays: list[np.ndarray]) -> bool:
    return all(a.shape == arrays[0].shape for a in arrays)


def _same_size(arrays: list[np.ndarray]) -> bool:
    return all(a.size == arrays[0].size for a in arrays)


def _number(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def _shorten(value: Any, width: int = 80) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"
