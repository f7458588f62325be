"""Everything that decides what is prepared."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.lm.corpus.dedup import NEAR
from trainwright.lm.corpus.filters import OWN, FilterOptions
from trainwright.lm.corpus.sources import LARGEST_BYTES, Fields


@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """Everything that decides what is prepared."""

    sources: tuple[str, ...] = ("installed",)
    suffixes: tuple[str, ...] = (".py",)
    fields: Fields = field(default_factory=Fields)
    largest: int = LARGEST_BYTES
    """Bytes of the longest file that is taken."""
    max_bytes: int = 0
    """Gathering ends with the last file that fits into so many bytes of kept text; 0: with the sources."""
    max_group_bytes: int = 0
    """Of one package or repository only the first files are taken that fit into so many bytes; 0: all."""
    filters: FilterOptions = field(default_factory=FilterOptions)
    """Of `installed` and the Hub."""
    own_filters: FilterOptions = OWN
    """Of folders and tables, which the user named as code of his choice."""
    near: float = NEAR
    """The Jaccard index of shingles from which two files are near duplicates."""
    validation: float = 0.05
    """The share of bytes that is held out, in whole groups."""
    seed: int = 0
    """Random seed for choosing the groups."""
    vocabulary_size: int = 0
    """Size of the tokenizer's vocabulary; 0: depends on the amount of training text."""
    tokenizer_bytes: int = 20_000_000
    """Bytes of evenly sampled training text for training the tokenizer."""
