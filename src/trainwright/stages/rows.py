"""Measurements of rows: equal, extreme, cut or odd ones, how well labels match them, and whether both sets are alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core import Facts, Place, Stage


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


@dataclass(frozen=True, kw_only=True)
class BatchOrder:
    """The class labels of consecutive batches of a loop without a loader."""

    batches: int
    rows: float
    """Mean number of rows in a batch."""
    majority: float
    """Mean share of the most frequent class in a batch."""
    classes: int
    """Number of classes in all of them together."""
    most_frequent: float
    """Share of the most frequent class in all of them together."""


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """A few rows whose value in a column is far from that of all other rows."""

    column: str
    feature: int | None
    """The position in rows that are vectors; None for single values and for the largest value of larger rows."""
    rows: tuple[int, ...]
    """The first of them."""
    count: int
    counted: int
    """How many rows were compared."""
    value: float
    low: float
    """The least value of the other rows."""
    high: float
    times: float
    """How many times further from the median than the furthest other row."""
    usual_loss: float | None = None
    """The loss of a step on other rows with the initial weights; None: not tried."""
    loss: float | None = None
    """The loss where such rows are in the batch."""
    failure: str = ""
    """What that step raised."""


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


@dataclass(frozen=True, kw_only=True)
class CutTexts:
    """What is left of texts in the script's scope in the token rows that were made from them, one for each."""

    expression: str
    """The script's expression for the texts."""
    rows: int
    compared: int
    cut: int
    """How many of the compared rows lack some of their text."""
    lost_share: float
    """The share of these texts' tokens that no row has."""
    longest: int
    """The most tokens of a compared row."""
    pieces: int
    """How many such rows all tokens would fill, roughly."""
    where: Place | None
    """The script's line that asks for truncation."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Classes with other numbers, as a probe fitted to the training rows sees it in the evaluation rows.

    Gains are shares of the error of a constant prediction that a probe saves: 1 is a perfect probe, 0 a useless one.
    """

    rows: int
    """How many evaluation rows were predicted."""
    gain: float
    renumbered: tuple[tuple[int, int], ...]
    """The classes whose evaluation rows have the inputs of another class, as pairs (in training, in evaluation)."""
    renumbered_gain: float
    """The gain with these classes exchanged; their numbers were read off other rows."""


@dataclass(frozen=True, kw_only=True)
class OddRow:
    """A row that is extreme in one of its columns."""

    row: int
    column: str
    """"" if the row as a whole is meant."""
    why: str
    """What is extreme: "the largest value, 1e+09"."""


@dataclass(frozen=True, kw_only=True)
class SourceCell:
    """Where a row came from: a table of the script, and the file that the table was read from."""

    expression: str
    """The script's expression for the table."""
    row: int
    """The table's row, counted from 0."""
    column: str = ""
    """"" if no single column is known to be at fault."""
    value: str = ""
    file: str = ""
    line: int | None = None
    """The file's line, counted from 1; None: no file is known, or its lines are not its rows."""


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A row on which a step fails, although the same step on other rows does not."""

    split: str
    odd: OddRow
    evaluated: bool = False
    """The step evaluates; False: it trains."""
    failure: str = ""
    """What the step raises with this row in its batch."""
    loss: float | None = None
    """Its loss."""
    usual_loss: float | None = None
    """The largest loss of a few batches of other rows."""
    cell: SourceCell | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How much of a set was read in search of extreme rows."""

    read: int
    rows: int | None
    """None: unknown, because the set is a stream that did not end."""


@dataclass(frozen=True, kw_only=True)
class OddRowFacts(Facts):
    """Steps on the extreme rows of each set, from the initial weights."""

    stage = Stage.OVERFIT
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By set."""
    bad: tuple[BadRow, ...] = ()
