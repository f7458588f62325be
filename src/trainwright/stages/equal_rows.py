"""Stage 1, dataset: rows that are equal, and names that have different numbers in the two sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Contradictions:
    """Training rows with the same inputs and different classes."""

    rows: int
    """How many rows were compared."""
    contradictory: int
    """How many of them have a twin of another class."""
    best_accuracy: float
    """The share of rows whose class can be told from their inputs at best."""
    nearest_differing: float
    values: int
    """Both as in Copies."""
    example: tuple[int, int]
    """Two rows with the same inputs and different classes."""


@dataclass(frozen=True, kw_only=True)
class Mispaired:
    """A batch whose rows reach the model in another order than their labels reach the loss."""

    rows: int
    mispaired: int
    """How many rows have a label that differs from their own."""


@dataclass(frozen=True, kw_only=True)
class Renumbered:
    """A column whose numbers stand for names that have other numbers in the evaluation set than in training."""

    column: str
    feature: int | None
    """The position in a row of categories; None for words of texts."""
    names: int
    """How many names are in both sets."""
    differing: int
    """How many of them have another number in the evaluation set."""
    example: str
    in_training: int
    in_evaluation: int
    table: str = ""
    """The script's table with the other numbers; empty: those of the evaluation set."""
    sources: tuple[str, str]
    """The script's tables that hold the names of the rows: of training, and of the evaluation set."""


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Evaluation rows that also occur in training, compared with the other training rows."""

    same_label_share: float
    """Share of these rows that have the same label in training."""
    nearest_differing: float
    """Median number of values, words or tokens in which such a row differs from the most similar row that is not
    identical."""
