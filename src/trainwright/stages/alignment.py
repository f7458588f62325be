"""How well a data set's labels match its inputs, in numbers (measured by `probes/labels/alignment.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How much better a probe learns one set's labels than permutations of them."""

    rows: int
    score: float
    """The labels' score minus the permutations' mean score, in standard deviations of the permutations."""
    control_score: float
    """The same for a synthetic label, made from half of the features and learned from the other half."""
    accuracy: float | None = None
    """Leave-one-out accuracy of the probe; None for real-valued labels."""
    permuted_accuracy: float | None = None
    single: bool = True
    """Each row is a single text, image or vector. False for pairs and for windows of one long series, where a
    correct label can depend on something such a probe cannot see."""
    classes: int | None = None
    """The number of classes, for labels that are classes."""
    pair_control_score: float | None = None
    """Words only: the score of a label that says whether two halves of the vocabulary agree, learned from pairs of
    words; the median over several splits into halves."""
    likeness: float | None = None
    """Words only: the similarity (0 to 1) of a row to its nearest neighbor, the median over the rows."""
    inputs: str = ""
    """tokens, text or numbers."""
