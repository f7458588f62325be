"""Compares facts from two sources, field by field: what a run shows beside what a check measured."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trainwright.core import Place


@dataclasses.dataclass(frozen=True)
class Compared:
    """Two facts of one class."""

    name: str
    equal: int
    fields: int
    differ: tuple[str, ...]
    """Each value that differs, with both: `modules[0].output.mean: 0.5, 0.7`."""

    def __str__(self) -> str:
        return "\n  ".join([f"{self.name}: {self.equal} of {self.fields} fields equal", *self.differ])


def compare_facts(ones: Iterable[Any], others: Iterable[Any], tolerance: float = 1e-4) -> Iterator[Compared]:
    """Compare those of one class; all fields differ of facts that one side lacks. Numbers may differ by this share."""
    left, right = ({type(one).__name__: one for one in side} for side in (ones, others))
    for name in dict.fromkeys((*left, *right)):
        fields = [field.name for field in dataclasses.fields(left.get(name, right.get(name)))]
        values = ((f, *(getattr(side.get(name), f, "no such facts") for side in (left, right))) for f in fields)
        differ = [list(_differ(field, one, other, tolerance)) for field, one, other in values]
        yield Compared(name, differ.count([]), len(fields), tuple(text for texts in differ for text in texts))


def _differ(at: str, one: Any, other: Any, tolerance: float) -> Iterator[str]:
    left, right = _parts(one), _parts(other)
    if left is not None and right is not None and left.keys() == right.keys():
        for key in left:
            yield from _differ(at + key, left[key], right[key], tolerance)
    elif not _equal(one, other, tolerance):
        yield f"{at}: {one}, {other}"


def _parts(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Place):  # a check and a run may name a file from different folders
        return {".file": Path(value.file).name, ".line": value.line}
    if dataclasses.is_dataclass(value):
        return {f".{field.name}": getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {f"[{key}]": part for key, part in value.items()}
    return {f"[{n}]": part for n, part in enumerate(value)} if isinstance(value, tuple | list | np.ndarray) else None


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    if all(isinstance(value, int | float | np.number) for value in (one, other)):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-8) or (one != one and other != other)
    return type(one) is type(other) and bool(one == other)
