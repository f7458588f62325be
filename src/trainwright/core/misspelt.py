"""A name that was misspelt: what Python suggests for it, whether that is a slip of the pen, and what to do about it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainwright.core.finding import Failure
from trainwright.core.fix import Fix, RenameName, Safety

_UNKNOWN_NAME = re.compile(r"name '(\w+)' is not defined")
_SUGGESTED = re.compile(r"(?:name '(\w+)' is not defined|has no attribute '(\w+)')\. Did you mean: '(\w+)'\?$")
# Shorter words differ on purpose: x and y, tr and te.
_LEAST_LETTERS = 4
# In shorter words another letter makes another word: test and text, left and lift.
_LEAST_REPLACED = 6
# A slip is one letter too many, too few or wrong, or two in the other order; in a long name there may be two slips.
_LONG = 10
MEND = "mend the line that raises, or what gives it such values"


@dataclass(frozen=True)
class Misspelt:
    """A name as it is written, and as it is meant."""

    written: str
    meant: str
    is_attribute: bool


def misspelt(failure: Failure) -> Misspelt | None:
    """The name that an exception says is unknown, if the one that is suggested for it differs by a slip only."""
    found = _SUGGESTED.search(failure.message) if failure.type in ("NameError", "AttributeError") else None
    if found is None:
        return None
    written = found[1] or found[2]
    return Misspelt(written, found[3], is_attribute=not found[1]) if is_slip(written, found[3]) else None


def is_slip(written: str, meant: str) -> bool:
    """Whether two names differ by slips of the pen within their longer words, not in a letter or number that tells
    variables apart (`x_train` and `y_train`, `model1` and `model2`, `netD` and `netG`, a class and its object, the
    epochs and an epoch)."""
    if written == meant or written[0] != meant[0] or re.sub(r"\D", "", written) != re.sub(r"\D", "", meant):
        return False
    if written[:-1] in (meant, meant[:-1]):
        return False
    if meant in dir(builtins) and written.startswith(meant):  # `inputs` is a variable that is missing, not `input`
        return False
    one, other = (re.split(r"_+", name.strip("_")) for name in (written, meant))
    if len(one) != len(other):
        return "".join(one) == "".join(other)
    pairs = [(a, b) for a, b in zip(one, other) if a != b]
    changes = sum(_changes(a, b) for a, b in pairs)
    if any(len(a) == len(b) < _LEAST_REPLACED and sorted(a) != sorted(b) for a, b in pairs):
        return False
    return all(max(map(len, p)) >= _LEAST_LETTERS for p in pairs) and changes <= 1 + (len(meant) >= _LONG)


def mend(failure: Failure) -> Fix:
    """What to do about an exception that ended a script, in a line; the report says more of a known message."""
    if failure.type == "ModuleNotFoundError":
        return Fix(does="install what is missing in the environment that runs the script, or correct its name")
    slip = misspelt(failure)
    if slip is not None and failure.where is not None:
        edit = RenameName(failure.where.file, failure.where.line, slip.written, slip.meant, of_object=slip.is_attribute)
        return Fix(does=f"write {slip.meant} for {slip.written}", safety=Safety.UNSAFE, edits=(edit,))
    suggested = _SUGGESTED.search(failure.message)
    unknown = _UNKNOWN_NAME.match(failure.message) if failure.type == "NameError" else None
    if suggested is not None:
        first = f"set {unknown[1]} before this line" if unknown else "use a name that the object has"
        return Fix(does=f"{first}, or write {suggested[3]} if that is meant")
    return Fix(does=f"set {unknown[1]} before this line" if unknown else MEND)


def _changes(one: Sequence[str], other: Sequence[str]) -> int:
    """How many letters are added, left out, replaced or exchanged with the next one between two words."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            best = min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and (a, b) == (other[j - 2], one[i - 2]):
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
