"""Arguments that a constructor does not take together, by part of its error message: which to leave out, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exclusive:
    """Arguments that exclude another one."""

    left_out: tuple[str, ...]
    """Each of them has to go, as far as it was given."""
    because: str


_SAMPLER = "the sampler decides which rows are drawn, and in which order"
_STREAM = "an IterableDataset yields its rows in its own order"
_WORKERS = "without worker processes (num_workers=0) it has no meaning"

EXCLUSIVE: dict[str, Exclusive] = {
    "sampler option is mutually exclusive with shuffle": Exclusive(("shuffle",), _SAMPLER),
    "batch_sampler option is mutually exclusive": Exclusive(
        ("batch_size", "shuffle", "sampler", "drop_last"), "the batch sampler decides which rows form each batch"
    ),
    "expected unspecified shuffle option": Exclusive(("shuffle",), _STREAM),
    "expected unspecified sampler option": Exclusive(("sampler",), _STREAM),
    "expected unspecified batch_sampler option": Exclusive(("batch_sampler",), _STREAM),
    "prefetch_factor option could only be specified in multiprocessing": Exclusive(("prefetch_factor",), _WORKERS),
    "persistent_workers option needs num_workers > 0": Exclusive(("persistent_workers",), _WORKERS),
    "is mutually exclusive with drop_last": Exclusive(
        ("drop_last",), "with batch_size=None, each row is its own batch"
    ),
}
