"""Stage 1, dataset: a sample of the items and the counts of all labels, as the loader will read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trainwright.core.finding import Failure, Place
from trainwright.core.stage import Facts, Stage
from trainwright.stages.alignment import Alignment
from trainwright.stages.reading import EndlessSet, EpochFacts, Repetition, SpentIterator

SAMPLED_ITEMS = 512
CENSUS_LABELS = 50_000
FEW_VALUES = 50
# A label column with more distinct integers than this is a count or an identifier, not a class.
MOST_CLASSES = 1_000
UNTRIED = "a step on other rows fails too"
IGNORED_LABEL = -100  # torch.nn.functional.cross_entropy's default ignore_index


@dataclass(frozen=True, kw_only=True)
class Split:
    """The rows read from a training or evaluation set, from which this stage is measured."""

    name: str
    rows: int | None
    """None: iterable, of unknown length."""
    items: Sequence[Mapping[str, Any]] = ()
    """Evenly spaced items (the first ones of an iterable set); keys are column names, or "0", "1" of a tuple."""
    indices: Sequence[int] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Whole columns (or their first part), if they can be read without reading every item."""
    read: int = 0
    """Number of rows in the columns."""
    digests: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Row-by-row hashes of the values of columns that are too large to keep."""
    non_finite: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Number of NaN or infinite values per row of such columns."""
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failure: Failure | None = None
    failed_row: int | None = None
    kind: str = "map"
    """map, iterable, or none if there is no set."""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """One column (or position of a tuple) of the items."""

    name: str
    kind: str
    """text, integer, float, boolean, numbers (a list or array of them), texts, missing, other."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Of the first item."""
    longest: int | None = None
    median_length: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    feature_deviations: tuple[float, ...] = ()
    """Standard deviation of each feature over the sampled rows, for rows that are vectors of one size up to 4096."""
    feature_means: tuple[float, ...] = ()
    """The mean of each such feature."""
    non_finite: int = 0
    """How many values are NaN or infinite, over `counted` rows."""
    non_finite_rows: tuple[int, ...] = ()
    """Such rows, the first 100,000."""
    missing: int = 0
    """Number of rows with None."""
    missing_rows: tuple[int, ...] = ()
    """Such rows, the first 100,000."""
    counted: int = 0
    values: Mapping[int | float | str, int] = field(default_factory=dict)
    """How often each value occurs, where a row holds one and at most FEW_VALUES differ; else empty."""


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """The counts of the label column's values."""

    column: str
    kind: str
    """class (one integer a row), tokens (integers per position), real (a number or a vector of them a row),
    multi-hot (a vector of 0 and 1), text."""
    census: Mapping[int | float | str, int] = field(default_factory=dict)
    """How often each value occurs, without the ignored -100; empty for real labels."""
    first_rows: Mapping[int | float | str, int] = field(default_factory=dict)
    """The first row that holds each value."""
    counted: int = 0
    rows_read: int = 0
    ignored: int = 0
    """How many labels are -100."""
    dtype: str = ""
    class_names: tuple[str, ...] = ()
    mean_run: float = 0.0
    """Mean number of equal labels in a row, over the rows in their order."""
    expected_run: float = 0.0
    """The same for shuffled rows."""
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    per_row: int = 1
    """Labels per row (median), for tokens and vectors."""

    @property
    def classes(self) -> int:
        """Number of distinct values."""
        return len(self.census)

    @property
    def majority_share(self) -> float:
        """Fraction of rows with the most frequent value."""
        return max(self.census.values()) / sum(self.census.values()) if self.census else 0.0

    @property
    def chance_nats(self) -> float | None:
        """ln C: the loss in nats of a uniform guess over the C values that occur."""
        return math.log(len(self.census)) if len(self.census) > 1 else None

    @property
    def entropy_nats(self) -> float | None:
        """The loss in nats of always predicting the class frequencies."""
        total = sum(self.census.values())
        return -sum(n / total * math.log(n / total) for n in self.census.values()) if total else None


@dataclass(frozen=True, kw_only=True)
class SplitFacts:
    """A training or evaluation set."""

    name: str
    rows: int | None
    kind: str = "map"
    sampled: int = 0
    columns: tuple[ColumnFacts, ...] = ()
    labels: LabelFacts | None = None
    failure: Failure | None = None
    failed_row: int | None = None
    row_hashes: tuple[int, ...] = ()
    """A hash of the inputs of each row that was read, labels left out; `hash_rows` says which rows."""
    hash_rows: Sequence[int] = ()
    labels_complete: bool = False
    """Every row's label was read."""

    @cached_property
    def hashes(self) -> frozenset[int]:
        """The different hashes of inputs."""
        return frozenset(self.row_hashes)

    @property
    def hashed(self) -> int:
        """How many rows were hashed."""
        return len(self.row_hashes)

    @property
    def hashed_all(self) -> bool:
        """Whether all rows were hashed."""
        return self.rows is not None and self.hashed >= self.rows

    def column(self, name: str) -> ColumnFacts | None:
        """The column of this name."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The names of columns of raw text."""
        return tuple(c.name for c in self.columns if c.kind == "text")


@dataclass(frozen=True, kw_only=True)
class Lookalike:
    """An object in the script's scope with the same rows and the model's inputs."""

    expression: str
    """The script's expression for it: `tokenized_datasets["train"]`."""
    columns: tuple[str, ...]
    split: str


@dataclass(frozen=True, kw_only=True)
class LabelSource:
    """Values in the script's scope, or in another column, from which a label column may have been made."""

    expression: str
    """How the script reaches them: `frame["stars"]`; for a column of the set itself, its name."""
    values: Mapping[int | float | str, int]
    """How often each occurs."""
    rows: int
    own_column: bool = False
    """It is another column of the same set."""


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """The sampled token rows, decoded with the script's tokenizer."""

    rows: int
    empty: int
    """Rows with nothing but special tokens and white space."""
    distinct: int
    """How many different texts."""
    unknown_share: float | None
    """Share of real tokens (special ones left out) that are the unknown token; None: it has none."""
    longest: int
    """Tokens in the longest row, special ones included."""
    source_distinct: int | None = None
    """How many different raw texts these rows have, where the set holds them."""
    source_tokens: float | None = None
    """The median number of tokens of the raw texts, uncut, without special tokens."""
    examples: tuple[tuple[str, str], ...] = ()
    """A raw text ("" where there is none) and what is left of it."""


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """The script's tokenizer."""

    expression: str
    size: int
    """len(tokenizer): vocabulary with added tokens."""
    pad_id: int | None
    eos_id: int | None
    longest_input: int | None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class AlignedSource:
    """A table in the script's scope with columns and labels like the training set's, from which a probe learns."""

    expression: str
    alignment: Alignment


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Numeric evaluation rows that occur in training, compared with training's other rows."""

    same_label_share: float
    """The share of them whose label is that of their training row, too."""
    nearest_differing: float
    """In how many values such a row differs from the one most like it among the different ones, the median."""
    values: int
    """Numbers in a row."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Inputs with different scales in training and evaluation, one of which is that of scaled inputs."""

    column: str
    """The one with the feature that is farthest off; its numbers follow."""
    mean: float
    deviation: float
    evaluation_mean: float
    evaluation_deviation: float
    far_share: float
    """The share of the features that are far off."""
    training_is_scaled: bool
    error: float
    """The squared error of a probe fitted to training rows on evaluation rows, in units of the targets' variance (of a
    class: of its being that class or not)."""
    error_rescaled: float
    """The same, once the features that are off have training's mean and deviation."""
    gain: float
    """By how much the latter is less than the former, or than that of knowing nothing where this is less."""
    gain_deviations: float
    """That, in standard errors."""
    rows: int
    """Number of predicted evaluation rows."""


@dataclass(frozen=True, kw_only=True)
class DatasetFacts(Facts):
    """The training and evaluation sets as the loader will read them."""

    stage = Stage.DATASET
    train: SplitFacts
    evaluation: SplitFacts | None = None
    accepts: tuple[str, ...] = ()
    """The names of the arguments that the model's forward takes, in order."""
    lookalikes: tuple[Lookalike, ...] = ()
    tokenizer: TokenizerFacts | None = None
    shuffles: bool | None = None
    """Whether the training loader shuffles; None if unknown."""
    drops_last: bool = False
    batch_size: int = 0
    overlap: int = 0
    """How many evaluation rows have the same inputs as a training row."""
    alignment: Alignment | None = None
    """How well the training labels match their inputs; None if unknown."""
    evaluation_alignment: Alignment | None = None
    aligned_source: AlignedSource | None = None
    """Measured only if the probe does not learn the training labels."""
    overlap_rows: tuple[tuple[int, int], ...] = ()
    """The first of them: evaluation row, training row."""
    copies: Copies | None = None
    """None where no rows of numbers are in both sets."""
    scaling: Scaling | None = None
    """None where both sets are of about one scale, or where that cannot be told."""
    repetition: Repetition | None = None
    """None where no row is read twice, or where the data set is not read by an index of the user's code."""
    sources: tuple[LabelSource, ...] = ()
    """Measured only if all training labels are the same."""
    texts: TextFacts | None = None
    unusable_rows: Mapping[str, str] = field(default_factory=dict)
    """By set: what a training step does with rows that have missing or non-finite values: the exception, or the
    loss; empty where it takes them; begins with UNTRIED where a step on other rows fails too."""
    label_place: Place | None = None
    """The user's line that wrote the label column."""
    batch_majority: float | None = None
    """The mean share of the most frequent class in the batches that rows read in order make; None: not counted."""
    epochs: EpochFacts | None = None
    spent: SpentIterator | None = None
    """None where epochs are counted otherwise, or the data were not seen to end."""
    endless: tuple[EndlessSet, ...] = ()

    @property
    def splits(self) -> tuple[SplitFacts, ...]:
        """The sets that exist."""
        return (self.train, self.evaluation) if self.evaluation else (self.train,)

    @property
    def failure(self) -> Failure | None:
        """The exception that reading a set raised, with the row."""
        for split in self.splits:
            if split.failure is not None:
                said = split.failure.message.split("\n")[0]
                return replace(
                    split.failure, message=f"{said} (reading row {split.failed_row} of the {split.name} set)"
                )
        return None
