"""All options that determine the prepared data."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright_lm.corpus.dedup import NEAR
from trainwright_lm.corpus.filters import OWN, FilterOptions
from trainwright_lm.corpus.sources import LARGEST_BYTES, Fields


@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """All options that determine the prepared data."""

    sources: tuple[str, ...] = ("installed",)
    suffixes: tuple[str, ...] = (".py",)
    fields: Fields = field(default_factory=Fields)
    largest: int = LARGEST_BYTES
    """Maximum size of a file, in bytes."""
    max_bytes: int = 0
    """Stop after the last file that fits into this many bytes of kept text; 0: read all sources."""
    max_group_bytes: int = 0
    """Take only the first files of each package or repository that fit into this many bytes; 0: all."""
    filters: FilterOptions = field(default_factory=FilterOptions)
    """For `installed` and the Hub."""
    own_filters: FilterOptions = OWN
    """For folders and tables, which users choose themselves."""
    near: float = NEAR
    """Two files with at least this Jaccard index of shingles are near duplicates."""
    validation: float = 0.05
    """The fraction of bytes to hold out, in whole groups."""
    seed: int = 0
    """Random seed for choosing the groups."""
    vocabulary_size: int = 0
    """Size of the tokenizer's vocabulary; 0: depends on the amount of training text."""
    tokenizer_bytes: int = 20_000_000
    """Bytes of evenly sampled training text for training the tokenizer."""
