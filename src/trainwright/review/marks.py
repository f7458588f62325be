"""What stands out on a sheet and no finding says: for the headline, so that no mark stands under a green tick.

How often each kind of mark stands on the sheet of a sound script is published in docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from trainwright.core import Finding, Place, Severity
from trainwright.core.sheet import Sheet
from trainwright.review.consequences import SAID_BY

# Marks that a headline names; names in one of them.
MOST_NAMED, MOST_NAMES = 3, 3


def tell_marks(sheet: Sheet, findings: Sequence[Finding], where: Place | None = None) -> tuple[str, ...]:
    """The marks that no finding says, a few words each.

    Args:
        where: the line of the training, for weights.
    """
    spoken = {one.name for one in findings if one.severity != Severity.NOTE}
    told: list[str] = []
    for table, tell in _TOLD.items():
        rows = [row for row in getattr(sheet, table) if row.mark]
        if rows and not spoken & SAID_BY[table]:
            told += dict.fromkeys(tell(rows))
    if where is not None:
        told = [f"{one} ({where})" if " tensor" in one else one for one in told]
    return (*told[:MOST_NAMED], *([f"{len(told) - MOST_NAMED} more, marked below"] if len(told) > MOST_NAMED else []))


def _grouped(rows: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    for mark in dict.fromkeys(row.mark for row in rows):
        yield mark, [row for row in rows if row.mark == mark]


def _as(template: str) -> Callable[[Sequence[Any]], Iterator[str]]:
    return lambda rows: (template.format(**vars(row)) for row in rows)


def _tell_scores(rows: Sequence[Any]) -> Iterator[str]:
    for mark, of in _grouped(rows):
        one = of[0]
        which = f" of {one.output}" if one.output else ""
        named = f"{one.rows:,} {one.rows_of} {one.unit}{which}"
        yield f"{named} are answered {'like a constant' if 'constant' in mark else 'worse than by a simple learner'}"


def _tell_profile(rows: Sequence[Any]) -> Iterator[str]:
    for row in rows:
        yield f"{', '.join(row.carriers)} of the raw row tells more than the model's inputs"


_OF_CLASS = {
    "never found": "never answered rightly",
    "confused": "mostly answered wrongly",
    "not evaluated": "never evaluated",
}


def _tell_classes(rows: Sequence[Any]) -> Iterator[str]:
    for mark, of in _grouped(rows):
        are, where = ("es", "are") if len(of) > 1 else ("", "is"), " in training" if of[0].evaluated is None else ""
        yield f"class{are[0]} {_names(row.label for row in of)} {are[1]} {_OF_CLASS.get(mark, mark)}{where}"


def _tell_numbers(rows: Sequence[Any]) -> Iterator[str]:
    for mark, of in _grouped(rows):
        which = f" ({of[0].rows_of})" if hasattr(of[0], "rows_of") else ""
        yield f"{_names(row.name for row in of)}{which}: {mark}"


_OF_LAYER = {
    "no gradient": "get no gradient",
    "never moved": "never move",
    "in no optimizer": "are in no optimizer",
    "all zero": "are all zero",
    "all zero, no gradient": "are all zero and get no gradient",
    "not finite": "are not finite",
}


def _tell_layers(rows: Sequence[Any]) -> Iterator[str]:
    for mark, of in _grouped(rows):
        if len(of) == 1:
            yield f"1 tensor, {of[0].name}: {mark}"
        else:
            parts = [row.name.split(".")[0] for row in of if row.name]
            yield f"{len(of):,} tensors{f' of {_names(parts)}' if parts else ''} {_OF_LAYER.get(mark, mark)}"


def _tell_pieces(rows: Sequence[Any]) -> Iterator[str]:
    for row in rows:
        yield f"{row.what}: {row.mark}{f' ({row.where})' if row.where is not None else ''}"


def _names(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"{', '.join(known[:MOST_NAMES])}{more}"


_TOLD: dict[str, Callable[[Sequence[Any]], Iterator[str]]] = {
    "curves": _as("{name} is {mark}"),
    "profile": _tell_profile,
    "scores": _tell_scores,
    "layers": _tell_layers,
    "own": _as("{name}: {mark}"),
    "pieces": _tell_pieces,
    "classes": _tell_classes,
    "outputs": _tell_numbers,
    "columns": _tell_numbers,
    "drawn": _as("{mark} of {size:,} rows of {name}"),
}
