"""Quotations of error messages: fixed text in which `…` stands for any text."""

from __future__ import annotations

import re
from functools import cache

# Colors in a terminal's or a notebook's output.
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> str:
    """A message without colors."""
    return _COLOR.sub("", text)


def flat(text: str) -> str:
    """A message on one line, without colors and without backticks, which a shell removes."""
    return " ".join(plain(text).replace("`", "").split())


def quoted_in(quotation: str, text: str) -> bool:
    """Whether a flat text contains what is quoted."""
    parts = _parts(quotation)
    # Most quotations are ruled out by one of their parts, much faster than by a search for all of them in order.
    return all(part in text for part in parts) and re.search(".*?".join(map(re.escape, parts)), text) is not None


def fixed_length(quotation: str) -> int:
    """How many characters of a quotation are fixed: the more, the more specific it is."""
    return len(flat(quotation).replace("…", ""))


@cache
def _parts(quotation: str) -> tuple[str, ...]:
    return tuple(flat(quotation).split("…"))
