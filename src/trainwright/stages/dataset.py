"""Stage 1, dataset: a sample of the items, and the counts of all labels, as the loader will read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trainwright.core import Facts, Failure, Place, Stage
from trainwright.stages.reading import EndlessSet, EpochFacts, Repetition
from trainwright.stages.rows import (
    Alignment,
    BatchOrder,
    Contradictions,
    Copies,
    CutTexts,
    Extremes,
    Mispaired,
    OddRow,
    Renumbered,
    Transfer,
)

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
    """None for an iterable set of unknown length."""
    items: Sequence[Mapping[str, Any]] = ()
    """Evenly spaced items (or the first ones, for an iterable set); keys are column names, or "0", "1" for a tuple."""
    indices: Sequence[int] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Whole columns (or their first part), if they can be read without reading every item."""
    read: int = 0
    """Number of rows in the columns."""
    digests: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Hashes of each row's values, for columns that are too large to keep."""
    non_finite: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Number of NaN or infinite values in each row of such columns."""
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    distinct_before_cut: Mapping[str, int] = field(default_factory=dict)
    """For labels that the step makes coarser for the loss, how many distinct values they had before."""
    failure: Failure | None = None
    failed_row: int | None = None
    kind: str = "map"
    """map, iterable, or none if there is no data set."""

    @property
    def names(self) -> list[str]:
        """The columns of which values were kept."""
        return list(dict.fromkeys([*self.columns, *(name for item in self.items[:1] for name in item)]))


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """One column of the items (or one position, if items are tuples)."""

    name: str
    kind: str
    """text, integer, float, boolean, numbers (a list or array of them), texts, missing, other."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Of the first item."""
    median_length: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    feature_deviations: tuple[float, ...] = ()
    """Standard deviation of each feature over the sampled rows, if rows are vectors of one size up to 4096."""
    feature_means: tuple[float, ...] = ()
    """The mean of each such feature."""
    non_finite: int = 0
    """Number of NaN or infinite values in `counted` rows."""
    non_finite_rows: tuple[int, ...] = ()
    """The first 100,000 such rows."""
    missing: int = 0
    """Number of rows with None."""
    missing_rows: tuple[int, ...] = ()
    """The first 100,000 such rows."""
    counted: int = 0
    values: Mapping[int | float | str, int] = field(default_factory=dict)
    """How often each value occurs, if each row has one value and at most FEW_VALUES are distinct; otherwise empty."""


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """The counts of the label column's values."""

    column: str
    kind: str
    """class (one integer per row), tokens (one integer per position), real (a number or vector per row),
    multi-hot (a vector of 0 and 1), text."""
    census: Mapping[int | float | str, int] = field(default_factory=dict)
    """How often each value occurs, leaving out -100; empty for real labels."""
    first_rows: Mapping[int | float | str, int] = field(default_factory=dict)
    """The first row with each value."""
    counted: int = 0
    rows_read: int = 0
    ignored: int = 0
    """How many labels are -100."""
    class_names: tuple[str, ...] = ()
    mean_run: float = 0.0
    """Mean length of runs of equal labels, with the rows in order."""
    expected_run: float = 0.0
    """The expected value for shuffled rows."""
    mean: float | None = None
    deviation: float | None = None
    distinct_before_cut: int | None = None
    """If the step makes the labels coarser for the loss, how many distinct values they had before."""
    per_row: int = 1
    """Median number of labels per row, for tokens and vectors."""

    @property
    def classes(self) -> int:
        """Number of distinct values."""
        return len(self.census)

    @property
    def majority_share(self) -> float:
        """Fraction of rows with the most frequent value."""
        return max(self.census.values()) / sum(self.census.values()) if self.census else 0.0


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
    """A hash of the inputs (without labels) of each row that was read; `hash_rows` gives the rows' indices."""
    hash_rows: Sequence[int] = ()
    extremes: tuple[Extremes, ...] = ()
    odd: tuple[OddRow, ...] = ()
    """The extreme rows among those that were read."""
    read: int = 0
    """How many rows were read, in columns or one by one."""
    labels_complete: bool = False
    """Every row's label was read."""

    @cached_property
    def hashes(self) -> frozenset[int]:
        """The distinct hashes of inputs."""
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
    """An object in the script's scope with the same rows, or under the same key, and the model's inputs."""

    expression: str
    """The script's expression for it: `tokenized_datasets["train"]`."""
    columns: tuple[str, ...]
    split: str
    same_rows: bool = True
    """It has as many rows; False: only the same key, in another dictionary."""


@dataclass(frozen=True, kw_only=True)
class LabelSource:
    """Values in the script's scope, or in another column, that a label column may have been made from."""

    expression: str
    """The script's expression for them, such as `frame["stars"]`; for another column of the same set, its name."""
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
    """Number of rows that contain only special tokens and whitespace."""
    distinct: int
    """Number of distinct texts."""
    unknown_share: float | None
    """Share of real tokens (special ones excluded) that are the unknown token; None: the tokenizer has none."""
    longest: int
    """Number of tokens in the longest row, including special tokens."""
    source_distinct: int | None = None
    """Number of distinct raw texts in these rows, if the set contains them."""
    source_tokens: float | None = None
    """Median number of tokens in the raw texts, untruncated, without special tokens."""
    examples: tuple[tuple[str, str], ...] = ()
    """Pairs of a raw text ("" if there is none) and the text that its tokens decode to."""


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """The script's tokenizer."""

    expression: str
    pad_id: int | None
    longest_input: int | None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class AlignedSource:
    """A table in the script's scope with the training set's columns and labels, and labels that a probe can learn."""

    expression: str
    alignment: Alignment


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Inputs on different scales in training and evaluation, where one of the two sets looks scaled."""

    column: str
    """The column whose feature differs most; the next four numbers describe that feature."""
    mean: float
    deviation: float
    evaluation_mean: float
    evaluation_deviation: float
    far_share: float
    """Share of features that differ by a factor or distance of FAR or more (`probes/splits/scaling.py`)."""
    training_is_scaled: bool
    error: float
    """Squared error on evaluation rows of a probe fitted to training rows, in units of the targets' variance (for
    classes: of the one-hot columns)."""
    error_rescaled: float
    """The same, after the differing features are rescaled to the training mean and deviation."""
    gain: float
    """How far rescaling lowers the error, from `error` or from the error of predicting the mean, whichever is less."""
    gain_deviations: float
    """The gain in standard errors."""
    rows: int
    """Number of predicted evaluation rows."""


@dataclass(frozen=True, kw_only=True)
class LabelCopy:
    """Input features that tell the label exactly in every training row, although the other features tell it, too."""

    column: str
    features: tuple[int, ...]
    """Their positions in a row (flattened); empty: the column has a single value per row."""
    relation: str
    """equal, affine, monotonic (it grows or falls with a real label), or classes (each class has its own values)."""
    rows: int
    distinct: int
    """Number of distinct labels."""
    others_score: float
    """How much better a probe learns the labels from the other features than permutations of the labels, in standard
    deviations."""


@dataclass(frozen=True, kw_only=True)
class DatasetFacts(Facts):
    """The training and evaluation sets as the loader will read them."""

    stage = Stage.DATASET
    train: SplitFacts
    evaluation: SplitFacts | None = None
    evaluation_place: Place | None = None
    """The user's line that evaluates the model on the evaluation rows, if no loader and no argument holds them."""
    accepts: tuple[str, ...] = ()
    """The names of the arguments of the model's forward, in order."""
    lookalikes: tuple[Lookalike, ...] = ()
    tokenizer: TokenizerFacts | None = None
    shuffles: bool | None = None
    """Whether the training loader shuffles; None if unknown."""
    sampler_weights: Mapping[int, float] = field(default_factory=dict)
    """The weight by which the sampler draws each class, if all rows of a class have the same."""
    drops_last: bool = False
    batch_size: int = 0
    overlap: int = 0
    """Number of evaluation rows with the same inputs as a training row."""
    alignment: Alignment | None = None
    """How well the training labels match their inputs; None if unknown."""
    evaluation_alignment: Alignment | None = None
    aligned_source: AlignedSource | None = None
    """Measured only if the probe does not learn the training labels."""
    overlap_rows: tuple[tuple[int, int], ...] = ()
    """The first of these rows, as pairs (evaluation row, training row)."""
    mispaired: Mispaired | None = None
    """None if the step keeps the rows of a batch and their labels together, or if that cannot be told."""
    contradictions: Contradictions | None = None
    """None if there are none, or if the labels are no classes."""
    renumbered: Renumbered | None = None
    """None if no such column was found, or if the names are not in the script's variables."""
    copies: Copies | None = None
    """None if no numeric rows are in both sets."""
    scaling: Scaling | None = None
    """None if both sets have about the same scale, or if that cannot be determined."""
    transfer: Transfer | None = None
    """None if a probe of the training rows understands the evaluation rows, or if that cannot be determined."""
    repetition: Repetition | None = None
    """None if no row is read twice, or if the user's code does not index the data set."""
    sources: tuple[LabelSource, ...] = ()
    """Measured only if all training labels are the same."""
    texts: TextFacts | None = None
    cut_texts: CutTexts | None = None
    """None if the texts of the rows are not in the script's scope."""
    unusable_rows: Mapping[str, str] = field(default_factory=dict)
    """By set, what happens in a training step on rows with missing or non-finite values: the exception or the loss;
    empty if the step succeeds; starts with UNTRIED if a step on other rows fails too."""
    label_place: Place | None = None
    """The user's line that wrote the label column."""
    batch_majority: float | None = None
    """Mean share of the most frequent class in batches of rows read in order; None: not counted."""
    batch_order: BatchOrder | None = None
    """None if a loader forms the batches, or if the rows have no class labels."""
    epochs: EpochFacts | None = None
    endless: tuple[EndlessSet, ...] = ()
    label_copy: LabelCopy | None = None
    """None if no feature tells the label of every row, or if no other feature tells anything about it."""

    @property
    def splits(self) -> tuple[SplitFacts, ...]:
        """The sets that exist."""
        return (self.train, self.evaluation) if self.evaluation else (self.train,)

    @property
    def failure(self) -> Failure | None:
        """The exception raised while reading a set, with the row."""
        for split in self.splits:
            if split.failure is not None:
                said = split.failure.message.split("\n")[0]
                return replace(
                    split.failure, message=f"{said} (reading row {split.failed_row} of the {split.name} set)"
                )
        return None
