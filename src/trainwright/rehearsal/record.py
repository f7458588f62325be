"""What was seen of a script that ran: plain numbers and small arrays, in order, the same for every framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Facts, LibraryWarning, Place, Redirected, Stage
from trainwright.core.guess import Guess
from trainwright.core.sample import SamplePart, Span
from trainwright.frameworks.packages import TrainingKind
from trainwright.look.results import LookResult
from trainwright.rehearsal.record_parts import (
    Best,
    Broken,
    DrawnAgain,
    Ended,
    Generated,
    Imported,
    KeptWeights,
    LastingNoise,
    Loaded,
    RawRows,
    Rewritten,
)

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
# Numbers of a row's label that are read, spread evenly over them; and groups in which a row's token ids are counted.
SAMPLED_WIDTH, TOKEN_GROUPS = 64, 512


class LabelKind(StrEnum):
    """What the labels of an output are."""

    CLASSES = "classes"
    """One of several classes a row."""
    BINARY = "binary"
    """One or several answers of yes or no a row."""
    NUMBERS = "numbers"
    """One or several numbers a row."""


class PairSource(StrEnum):
    """How outputs and their labels were seen together; the surest first."""

    LOSS = "loss"
    """Both were given to a loss function."""
    FIT = "fit"
    """The labels were given to `fit` or `evaluate`, and the outputs are the model's for them."""
    METRIC = "metric"
    """Both were given to a function of metrics, the outputs maybe in another unit than the loss has them."""
    COMPARISON = "comparison"
    """The output's choice was compared with the labels (`guess == labels`)."""
    LOADER = "loader"
    """The loader's batch holds them at the place where training has its labels."""
    DIFFERENCE = "difference"
    """They were subtracted from each other."""


@dataclass(frozen=True, order=True)
class Output:
    """One output of the model, with labels of its own."""

    kind: LabelKind
    width: int
    """How many classes, or how many numbers a row."""
    number: int = 0
    """Tells outputs of the same kind and width apart that the same call of the model gave."""

    @property
    def is_single(self) -> bool:
        """Whether a row has one label, which is a class or a yes or no."""
        return self.kind == LabelKind.CLASSES or (self.kind == LabelKind.BINARY and self.width == 1)

    def __str__(self) -> str:
        numbers = "number" if self.width == 1 else "or more numbers" if self.width >= SAMPLED_WIDTH else "numbers"
        unit = {LabelKind.CLASSES: "classes", LabelKind.NUMBERS: numbers, LabelKind.BINARY: "yes or no"}[self.kind]
        return f"{self.width} {unit}" + (f", output {self.number + 1}" if self.number else "")


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the model answered for the rows of one call, beside what is right. n rows, at most `MOST_ROWS` of the call."""

    output: Output
    update: int
    """How many updates had been made."""
    trains: bool
    """Whether gradients flow from these outputs into the weights."""
    labels: NDArray[Any]
    """(n,) integers for classes, otherwise (n, width) floats."""
    guesses: Integers | None = None
    """(n,) the class with the highest score; classes only."""
    log_losses: Floats | None = None
    """(n,) minus the logarithm of the label's probability; classes only."""
    certainties: Floats | None = None
    """(n,) the probability of the guess; classes only."""
    values: Floats | None = None
    """(n, width) probabilities of yes, or numbers; not for classes."""
    keys: Integers | None = None
    """(n,) one number for each row that the model received: equal rows have equal keys."""
    numbers: Integers | None = None
    """(n,) the rows' numbers in their set, where a loader drew them."""
    inputs: Floats | None = None
    """(n, d) the rows as the model received them; token ids as counts (`rows.py`). Not for each call, to save memory."""
    total: int = 0
    """Rows of the call, before they were capped."""
    model: int = 0
    """The model object; 0: unknown."""
    evaluation: int | None = None
    """The number of the evaluation pass, in `Record.passes`."""
    data: int = 0
    """The set that the rows come from; 0: unknown."""
    source: PairSource = PairSource.LOSS
    loss: float | None = None
    """The value of the loss, where it is a plain mean over the rows."""
    is_noisy: bool = False
    """Whether the model was in training mode and has layers that differ in it."""
    per_row: int = 1
    """Labels of one row of the model; more: n counts its positions, as the tokens of a language model."""


@dataclass(kw_only=True)
class Update:
    """One step of an optimizer that was looked at (each at first, then fewer)."""

    number: int
    """From 1 on, over all optimizers of the script."""
    optimizer: int
    rate: float
    """The highest learning rate of its groups."""
    gradient_norm: float | None = None


@dataclass(kw_only=True)
class Pass:
    """An evaluation pass: calls of one model without gradients, one after the other, over one set."""

    number: int
    update: int
    """How many updates had been made."""
    model: int
    is_trained: bool
    """Whether updates change this very object."""
    weights: float
    """A fingerprint of its weights: equal weights have equal ones."""
    data: int = 0
    """The set that it reads; 0: unknown."""
    calls: int = 0
    noisy_calls: int = 0
    """Calls in training mode, of a model with layers that differ in it."""
    where: Place | None = None


@dataclass(kw_only=True)
class Number:
    """A number that the script reports about its training."""

    update: int
    name: str
    """In lower case, as it is logged, printed or called."""
    value: float
    source: str
    """`printed`, `logged`, `returned` (by a function of metrics) or `history`."""


@dataclass(kw_only=True)
class Parameter:
    """A tensor of weights, from the first to the last update of its optimizer."""

    name: str
    shape: tuple[int, ...]
    is_trainable: bool
    is_held: bool
    """Whether an optimizer that stepped holds it."""
    had_gradient: bool
    """Whether a gradient above rounding was seen."""
    has_moved: bool
    steps: int
    size_before: float
    """Root mean square of a sample of its values, at the first step, and below at the end."""
    size_after: float
    model: int = 0
    is_left_unfrozen: bool = False
    """Whether the last training unfroze it, it has gradients, and never moved since."""
    rounded_share: float | None = None
    """Of half precision: the share of a sample of its values that are in the end what they were at the first step."""


@dataclass(kw_only=True)
class Drawn:
    """The rows that a loader drew from a set."""

    data: int
    size: int
    """Rows of the set."""
    name: str
    """The set's class."""
    draws: Counter[int] = field(default_factory=Counter)
    """How often each row was drawn, by its number."""
    evaluated: Counter[int] = field(default_factory=Counter)
    """How often of these in readings whose batches met the model without gradients only."""
    trains: bool = False
    """Whether updates were made with these rows."""
    where: Place | None = None
    """Where the loader was built."""


@dataclass(kw_only=True)
class TrainedLabels:
    """The labels of one output in all training calls."""

    classes: Counter[int] = field(default_factory=Counter)
    """How often each class was drawn; classes only."""
    count: int = 0
    """Rows; not for classes, as below."""
    total: Floats | None = None
    """(width,) sum of the labels."""
    squares: Floats | None = None
    """(width,) sum of their squares."""


@dataclass(kw_only=True)
class Training:
    """One training of the script."""

    number: int
    """From 1 on."""
    kind: TrainingKind = TrainingKind.LOOP
    begins: int
    """How many updates had been made before it, and below at its end."""
    ends: int | None = None
    planned: int | None = None
    """Updates that were planned, if known."""
    is_cut: bool = False
    """Whether it was ended early because its time was over."""
    weights_before: float | None = None
    """Fingerprint of the trained weights at its beginning, and below at its end."""
    weights_after: float | None = None
    has_moved: bool | None = None
    """Whether its updates have changed the weights; None: not known."""
    models: tuple[int, ...] = ()
    where: Place | None = None

    @property
    def is_loop(self) -> bool:
        """Whether it is made by a loop of the script's or of a package's, not by a framework's own."""
        return self.kind == TrainingKind.LOOP


@dataclass(kw_only=True)
class Sampled:
    """One row that is shown by itself; `number`: in its set, if known."""

    output: Output
    update: int
    trains: bool
    data: int
    model: int
    source: PairSource
    number: int | None
    inputs: list[tuple[str, NDArray[Any]]]
    """As the model received them; empty once they are `parts`."""
    labels: NDArray[Any]
    """Of one row: one class, the numbers, or a label for each place."""
    ignored: int
    guess: int | None
    certainty: float | None
    values: Floats | None
    loss: float | None
    right: tuple[int, int] | None
    """How many of its answers are right, of how many; None: they are no classes."""
    why: tuple[str, ...] = ()
    parts: tuple[SamplePart, ...] = ()
    target: tuple[Span, ...] = ()


@dataclass(kw_only=True)
class Record(Facts):
    """A run of the script, as its watchers saw it."""

    stage: ClassVar[Stage] = Stage.REHEARSAL

    updates: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)
    """What `backward` was called on, with the updates made before it. Keras: the mean of the batches since the entry before."""
    looked_updates: list[Update] = field(default_factory=list)
    """The optimizers' updates that were looked at: each of the first ones, then one in several (`Recorder.stride`)."""
    trainings: list[Training] = field(default_factory=list)
    answers: list[Answers] = field(default_factory=list)
    """Of training calls the last ones, of evaluation passes the first, some in between and the last (`recorder.py`)."""
    trained_labels: dict[Output, TrainedLabels] = field(default_factory=dict)
    trained_rows: dict[Output, tuple[Floats, NDArray[Any], Integers]] = field(default_factory=dict)
    """Inputs (n, d), labels and keys of distinct rows that were trained on."""
    trained_keys: dict[int, int] = field(default_factory=dict)
    """How often each row was trained on, by its key, in the calls that were looked at (`Recorder.is_due`); capped."""
    first_trained: dict[int, int] = field(default_factory=dict)
    """How many updates had been made when each row was first trained on, by its key; capped."""
    answers_of: dict[Output, dict[int, Counter[int]]] = field(default_factory=dict)
    """The classes that each row was trained with, by its output and its key; capped."""
    passes: list[Pass] = field(default_factory=list)
    unkept_passes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Further passes of a model, by its number, and after how many updates the last one was."""
    drawn: list[Drawn] = field(default_factory=list)
    raw: list[RawRows] = field(default_factory=list)
    rewritten: list[Rewritten] = field(default_factory=list)
    drawn_again: list[DrawnAgain] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    guesses: dict[str, Guess] = field(default_factory=dict)
    """What guessing gives by the script's own metric functions, under the names of `numbers`."""
    kept: list[KeptWeights] = field(default_factory=list)
    loaded: list[Loaded] = field(default_factory=list)
    best: list[Best] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    lasting_noise: list[LastingNoise] = field(default_factory=list)
    warnings: list[LibraryWarning] = field(default_factory=list)
    ended: Ended = field(default_factory=Ended)
    earlier: list[Ended] = field(default_factory=list)
    """How the runs ended before it, of the script as it is and of copies in which fewer lines were changed."""
    passed: list[LookResult] = field(default_factory=list)
    """The looks at those ends, where a copy goes past them."""
    changed: tuple[str, ...] = ()
    """What was changed in the copy that was run, a line each; empty: the script was run as it is."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Of the script, with its watchers."""
    samples: list[Sampled] = field(default_factory=list)
    generated: list[Generated] = field(default_factory=list)
    class_names: dict[Output, tuple[str, ...]] = field(default_factory=dict)
    looks: list[LookResult] = field(default_factory=list)
    broken: Broken | None = None
    """None: each loss was finite, or the rows could not be looked at."""
    is_scaled: bool = False
    """Whether losses were multiplied by a gradient scaler's factor before `backward`."""
    several_targets: int = 0
    """Training calls in which one output met several targets (mixed rows)."""
    widened: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """The shapes of outputs and labels that a loss broadcast against each other; None: there were none."""
    isolation: str = ""  # `kernel` or `python`: what kept the script from leaving anything behind
    kept_away: tuple[str, ...] = ()
    """What the script would have written, tracked or sent, in a few words each."""
    start_seconds: float | None = None
    """Until its first training began."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of Python and the frameworks that it has loaded."""
    imported: Imported | None = None
    """None: further runs begin anew."""
    redirected: Redirected | None = None
    remarks: tuple[str, ...] = ()
    """Sentences on its devices and on the processes that it trains with."""
    watcher_errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Whether it, or a training in it, was ended early because its time was over."""
        return self.ended.is_cut or any(training.is_cut for training in self.trainings)

    @property
    def where(self) -> Place | None:
        """The line of its first training of which one is known."""
        return next((training.where for training in self.trainings if training.where is not None), None)

    def updates_in(self, training: Training) -> int:
        """How many updates a training has made."""
        return (self.updates if training.ends is None else training.ends) - training.begins
