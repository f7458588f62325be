"""Stage 1, dataset: whether what a probe learns from the training rows holds for the evaluation rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rearranged:
    """A change of the evaluation inputs with which they are understood like training rows."""

    what: str
    """In what the evaluation inputs differ: "their columns are in reverse order"."""
    gain: float
    """As `Transfer.gain`, with the change undone."""
    deviations: float
    """How many standard errors the change lowers the error on the evaluation rows."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A probe fitted to the training rows and asked about the evaluation rows, where either set can be learned by itself.

    Gains are shares of the error of a constant prediction that a probe saves: 1 is a perfect probe, 0 a useless one.
    """

    kind: str
    """class or real, as in `LabelFacts`."""
    rows: int
    """How many evaluation rows were predicted."""
    gain: float
    training_gain: float
    """Within the training rows: each is predicted from the others."""
    evaluation_gain: float
    """The same within the evaluation rows."""
    renumbered: tuple[tuple[int, int], ...] = ()
    """The classes whose evaluation rows have the inputs of another class, as pairs (in training, in evaluation)."""
    renumbered_gain: float = 0.0
    """The gain with these classes exchanged; their numbers were read off other rows."""
    rearranged: Rearranged | None = None
    """None if no change that was tried makes the evaluation rows understood."""
