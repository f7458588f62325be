"""How well a set's labels match its inputs, in numbers (measured by `probes/labels/alignment.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How much better than their permutations a probe learns the labels of one set."""

    rows: int
    score: float
    """The score of the labels above the mean of their permutations, in standard deviations of the permutations."""
    control_score: float
    """The same for a label made from half of the features and learned from the other half."""
    accuracy: float | None = None
    """Fraction of rows whose class is predicted correctly from the others; None for real-valued labels."""
    permuted_accuracy: float | None = None
    single: bool = True
    """Each row is one text, image or vector, on its own; False for pairs and for windows of one long series, where
    a right label can depend on what such a probe cannot see."""
    classes: int | None = None
    """The number of classes, for labels that are classes."""
    pair_control_score: float | None = None
    """Of words: the score of a label that says whether two halves of the vocabulary agree, learnt from pairs of words;
    the median of some halves."""
    likeness: float | None = None
    """Of words: the similarity, 0 to 1, of a row to the row most like it; the median over the rows."""
    inputs: str = ""
    """tokens, text or numbers."""
    numbering_error: float | None = None
    """Of labels that are 3 to MOST_NUMBERED integers: the share of their variance that a linear probe, fitted to the
    integers as a quantity, leaves unexplained in left-out rows."""
    other_numberings_error: float | None = None
    """The same with other numberings of the classes: the median of many."""
