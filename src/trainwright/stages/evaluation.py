"""Stage 7, evaluation: the script's own, watched as it runs; a Trainer's and Keras's is asked once more behind the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trainwright.core import Facts, Failure, Place, Stage
from trainwright.core.guess import Guess
from trainwright.stages.tensor import TensorFacts


class SubstitutePredictions(StrEnum):
    """Substitutes for the predictions that are passed to a metric function to test it.

    Perfect predictions are made from the labels, in the shape of the real predictions.
    """

    FIRST_OUTPUT = "the first of several outputs"
    CLASSES = "the index of each row's largest score"
    ALIGNED = "predictions in the shape of the labels"
    TWO_COLUMNS = "a column of zeros before the only column"
    PERFECT = "perfect predictions"
    PERFECT_CLASSES = "the labels themselves"
    PERFECT_ALIGNED = "perfect predictions in the shape of the labels"
    NEAR_ALIGNED = "predictions off by a thousandth of the labels' deviation"
    PERFECT_TWO_COLUMNS = "perfect predictions after a column of zeros"
    INVERTED = "perfect predictions with their sign turned"
    ZERO_FOR_IGNORED = "labels with 0 in place of -100"


# Batch statistics change slightly from one pass to the next, so two passes over the same rows differ by a few rows.
ABOUT = 0.3


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """An elementwise comparison of a model's output with labels in the user's own evaluation."""

    operation: str
    """==, != or -."""
    predictions: TensorFacts
    labels: TensorFacts
    result: tuple[int, ...]
    """The shape of the result; empty if it raised."""
    where: Place | None = None
    whole_predictions: bool = True
    """All predictions are integers."""
    whole_labels: bool = True
    columns: int | None = None
    """The number of columns that an argmax was taken over to get the predictions; None: there was no argmax."""
    indexed_at: Place | None = None
    """The user's line with that argmax."""
    equal_share: float | None = None
    """Share of elements where both sides are equal."""
    right_share: float | None = None
    """Fraction of labels that the model's scores predict correctly, by argmax or threshold."""
    scores: tuple[int, ...] = ()
    """The shape of the model's output."""
    of_pair: bool = False
    """The largest scores came in a tuple with their places, which is equal to no tensor; `predictions` are the scores."""
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A variable that an evaluation in a loop adds to, and its value after each of two equal passes."""

    name: str
    """Its name in the script: correct, metric.total."""
    start: float
    once: float
    twice: float
    added_at: Place | None = None
    begun_at: Place | None = None
    """The user's line that initializes it."""
    set_back_by: str = ""
    """The user's reset method that the framework calls before each pass."""
    carried: bool = False
    """Seen in the run itself, in which passes differ: the second pass began with what the first one had come to."""

    @property
    def survives(self) -> bool:
        """Whether the second pass continued from the first pass's result."""
        if self.carried:
            return True
        first, second = self.once - self.start, self.twice - self.once
        return first > 0 and abs(second - first) <= ABOUT * first


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """An object that acts on a metric's value at the end of each epoch."""

    kind: str
    """Its class, such as EarlyStopping."""
    purpose: str
    """What it does, such as stopping training or keeping the best weights."""
    metric: str
    """The metric's name in the training log, such as val_loss."""
    position: int | None
    """The position of the metric among the constructor's positional arguments; None: it is no argument of it."""
    mode_position: int | None = None
    """The position of the direction."""
    in_file_name: bool = False
    """The metric's value is part of the file names that it writes."""
    greater: bool | None = None
    """Whether it treats greater values as better; None: it cannot tell."""
    usual: bool | None = None
    """Whether the framework treats greater values of this metric as better; None: it does not know."""
    failure: Failure | None = None
    """The exception that it raises at the end of the first epoch."""
    value: float | None = None
    """The metric's value in the evaluation before training."""
    where: Place | None = None
    """The user's line that built it."""


@dataclass(frozen=True, kw_only=True)
class Quotient:
    """A quotient that an evaluation makes of what its loop over a loader counted: correct / len(loader)."""

    name: str
    """The variable with the dividend."""
    written: str
    """The statement of the loop that computes it."""
    quotient: str
    by_rows: bool
    """The divisor is the number of rows, rather than of batches."""
    added: bool
    """The statement adds to the variable, rather than assigning to it."""
    mean: bool | None = None
    """It adds each batch's mean, rather than its sum; None: unknown."""
    compared: tuple[tuple[int, int], ...] = ()
    """How many elements were equal, and how many were compared, in each batch of a short pass."""
    batches: int
    """How many batches a short pass evaluated on this line."""
    where: Place
    divided_at: Place


@dataclass(frozen=True, kw_only=True)
class Reshuffled:
    """Predictions on a data set whose passes differ in their order, and whose labels are read in another pass."""

    expression: str
    where: Place
    """The user's line that predicts."""
    labels_at: Place
    """The user's line that reads the set once more."""


@dataclass(frozen=True, kw_only=True)
class EvaluationFacts(Facts):
    """The results of the evaluation before training."""

    stage = Stage.EVALUATION
    present: bool = True
    """There is an evaluation set."""
    planned: bool = True
    """Training will evaluate along the way."""
    failure: Failure | None = None
    metrics_failure: Failure | None = None
    """The metric function raised."""
    metrics_named: bool = True
    """It returned a dictionary of names and numbers; False: it returned something else, which counts as a failure."""
    predictions: tuple[TensorFacts, ...] = ()
    """The predictions passed to the metric function; several if the model returns several outputs."""
    labels: TensorFacts | None = None
    label_values: tuple[float, ...] = ()
    """The distinct labels passed to the metric function, if there are at most 32."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Under the framework's names (eval_loss, eval_accuracy)."""
    returned: Mapping[str, float] = field(default_factory=dict)
    """The metric function's results, under its own names."""
    metrics_when: Mapping[SubstitutePredictions, Mapping[str, float] | str] = field(default_factory=dict)
    """The metric function's results for substitutes; a string is the exception it raised."""
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    """What guessing gives by the same function, under its own names; empty if that is not known."""
    needs_all_rows: bool = False
    """The metric function raised on a sample, but not on as many rows as the whole set has."""
    metrics_by: str = "compute_metrics"
    """How the report refers to the function that computes the metrics."""
    continuous_labels: bool = False
    """The labels are numbers, and not all are integers."""
    ignored_share: float = 0.0
    """Fraction of labels that are -100."""
    rows: int | None = None
    """Number of rows in the whole evaluation set."""
    memory_bytes: int | None = None
    """The machine's memory, in bytes."""
    keeps_predictions: bool = False
    """All predictions are kept until the evaluation ends."""
    set_names: tuple[str, ...] = ()
    """The names of several evaluation sets."""
    set_name: str = ""
    """If there are several, the name of the measured one."""
    label_keys: tuple[str, ...] = ()
    """The label names that the framework looks for in an evaluation batch."""
    batch_keys: tuple[str, ...] = ()
    loss_keys: tuple[str, ...] = ()
    """If the evaluation returned no loss: the keys of the batch that let the model compute one."""
    best_metric: str | None = None
    """The metric that selects the best checkpoint; None: no best checkpoint is selected."""
    best_greater: bool | None = None
    watchers: tuple[Watcher, ...] = ()
    logged: tuple[str, ...] = ()
    """Names of everything that training logs at the end of an epoch; empty if unknown."""

    in_loop: bool = False
    """The evaluation is part of the user's own training loop, and was run there."""
    evaluated_at: tuple[Place, ...] = ()
    """The user's lines that call the model to evaluate it."""
    batches: int = 0
    """Number of evaluated batches per pass."""
    comparisons: tuple[Comparison, ...] = ()
    counters: tuple[Counter, ...] = ()
    quotients: tuple[Quotient, ...] = ()
    reshuffled: Reshuffled | None = None

    def when(self, given: SubstitutePredictions) -> Mapping[str, float]:
        """The metric function's results for this substitute; empty if it was not called or raised."""
        answer = self.metrics_when.get(given, {})
        return {} if isinstance(answer, str) else answer
