"""All options that determine the prepared data, as the command line reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from cyclopts import Parameter, Token

from trainwright.errors import UsageError
from trainwright_lm.corpus.filters import OWN, FilterOptions
from trainwright_lm.corpus.sources import LARGEST_BYTES, Fields

# Two texts with at least this Jaccard index are near duplicates; SantaCoder (Ben Allal and others, 2023) and StarCoder
# (Li and others, 2023) drop code from 0.7 on.
NEAR = 0.7
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def words(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for token in tokens for word in token.value.split(",") if word.strip())


def _size(_: Any, tokens: Sequence[Token]) -> int:
    """The number of bytes in "20MB", "1.5 GB" or "1000000"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", tokens[0].value, re.IGNORECASE)
    if not match:
        raise UsageError(
            f"{tokens[0].keyword} must be a number of bytes, as in 20MB or 1000000; got {tokens[0].value!r}."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


Size = Annotated[int, Parameter(converter=_size, show_default=lambda size: f"{size // 10**6}MB" if size else 0)]
Words = Annotated[tuple[str, ...], Parameter(converter=words, n_tokens=1, negative=(), show_default=",".join)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """All options that determine the prepared data."""

    sources: Annotated[tuple[str, ...], Parameter(parse=False)] = ("installed",)
    suffixes: Words = (".py",)
    """File name endings to read from folders and packages, separated by commas."""
    fields: Annotated[Fields, Parameter(name="*")] = field(default_factory=Fields)
    largest: Size = LARGEST_BYTES
    """Skip files larger than this, in bytes or as in 1MB."""
    max_bytes: Size = 0
    """Stop after keeping this much text, in bytes or as in 50MB. Files are read in hash order, which makes this an even
    sample; table rows are read in their own order."""
    max_group_bytes: Size = 0
    """Take at most this much text from one package or repository, for more variety in the same number of bytes."""
    filters: Annotated[FilterOptions, Parameter(parse=False)] = field(default_factory=FilterOptions)
    """For `installed` and the Hub."""
    own_filters: Annotated[FilterOptions, Parameter(parse=False)] = OWN
    """For folders and tables, which users choose themselves."""
    near: float = NEAR
    """Jaccard index of five-word shingles from which two files count as near duplicates."""
    validation: float = 0.05
    """Fraction of bytes to hold out, in whole groups."""
    seed: int = 0
    """Random seed for choosing the held-out groups."""
    vocabulary_size: Annotated[int, Parameter(name="--vocabulary")] = 0
    """Number of tokenizer entries. Default: 2048 for less than 30 MB of training text, otherwise 8192."""
    tokenizer_bytes: Size = 20_000_000
    """Amount of evenly sampled text to train the tokenizer on, in bytes or as in 20MB."""
