"""Stage 9, baseline: whether the training learns, by its loss beside that of a constant prediction, on rows of the training
and on rows held out of it; if it was not seen to learn, where along the pipeline a probe can read the label."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Facts, Place, Stage

# Fewer held-out rows show nothing short of a perfect prediction.
FEWEST_HELD_ROWS = 16

# Why nothing can be said of a step.
NO_LOSS = "no loss was seen in a step"

# A shorter training may end before it learns anything.
FEWEST_UPDATES = 64
# After so many updates a training of unknown length has had its chance.
MANY_UPDATES = 512

# Weights whose updates change a loss by less, as a share of it, hardly move.
SAME_LOSS = 1e-4

# A loss that is below a constant prediction's by a smaller share of it shows nothing.
SHOWN_SHARE = 0.02
# One answer for this share of the rows is one for all.
ONE_ANSWER = 0.99
# In standard deviations of permuted labels. The best of several probes on shuffled labels stays under 3.5 in 99 of 100
# sets (as in misaligned-labels); what counts as readable is far beyond it.
UNREADABLE = 3.5
READABLE = 8.0
# A planted label, half of which follows a tenth of the features, must reach this for silence to mean anything.
POWER = 6.0


@dataclass(frozen=True, kw_only=True)
class Station:
    """What a probe reads of the label at one point of the pipeline."""

    name: str
    """A module's path, or an operation."""
    score: float
    """How much better it reads the labels than permutations of them, in standard deviations of the permutations."""
    share: float
    """0: nothing, 1: everything. Accuracy above that on permuted labels; for numbers, correlation."""
    accuracy: float | None = None
    """Leave-one-out accuracy; None for targets that are no classes."""
    permuted: float | None = None
    """The same for permuted labels."""
    module: str = ""
    kind: str = ""
    where: Place | None = None

    @property
    def tells(self) -> bool:
        """Whether the label can certainly be read here."""
        return self.score >= READABLE

    @property
    def silent(self) -> bool:
        """Whether no more can be read here than of permuted labels."""
        return self.score < UNREADABLE


@dataclass(frozen=True, kw_only=True)
class Information:
    """The label as a probe reads it from what the model is given, and from each result of its forward pass."""

    rows: int
    power: float
    """The score of planted labels, at what the model is given."""
    structure: float = 0.0
    """The score of a label made from half of the model's inputs, as read from the other half; noise has none."""
    single: bool = True
    """Whether each row is one text, picture or vector, not a pair or a window of one series."""
    given: Station
    stations: tuple[Station, ...]
    """In the order of the forward pass; the last ones are the scores."""

    @property
    def lost(self) -> tuple[Station, Station] | None:
        """The last station that tells the label, and the next one, if it and all that follow are silent."""
        every = (self.given, *self.stations)
        telling = max((i for i, s in enumerate(every) if s.tells), default=None)
        if telling is None or telling + 1 >= len(every) or not all(s.silent for s in every[telling + 1 :]):
            return None
        return every[telling], every[telling + 1]


@dataclass(frozen=True, kw_only=True)
class MostAnswered:
    """The class that is answered for most of the held-out rows."""

    answer: int
    share: float
    """Of the rows, by the answers."""
    of_labels: float
    """Of the rows, by their labels."""


@dataclass(frozen=True, kw_only=True)
class EvaluatedLoss:
    """The losses on the held-out rows after some updates, in the script's unit."""

    updates: int
    loss: float
    constant: float
    """Of the best constant prediction for these rows (class shares, mean or median)."""
    most_answered: MostAnswered | None = None
    """None: the loss compares no classes."""

    def answers_only(self, label: int | float | str) -> bool:
        """Whether nearly each row gets this answer, although some have another label."""
        most = self.most_answered
        return most is not None and most.answer == label and most.share >= ONE_ANSWER and most.of_labels < 1.0

    @property
    def share(self) -> float:
        """How far the loss is below the constant's, as a share of it."""
        return (self.constant - self.loss) / self.constant if self.constant > 0 else 0.0

    @property
    def held(self) -> bool:
        """Whether the rows are predicted no better than by a constant."""
        return self.share < SHOWN_SHARE


@dataclass(frozen=True, kw_only=True)
class LearningFacts(Facts):
    """A training from its initial weights, looked at before its first update and behind its last."""

    stage = Stage.BASELINE
    held_out: str = ""
    """Where the held-out rows come from: evaluation, or training."""
    rows: int = 0
    """Number of held-out rows."""
    planned: int | None = None
    """Updates of the whole training; None: unknown."""
    evaluations: tuple[EvaluatedLoss, ...] = ()
    """The first is before any update."""
    trained: EvaluatedLoss | None = None
    """The last look at rows that were trained on."""
    information: Information | None = None
    """What the forward pass keeps of the label after the last update, if the held-out rows are at the constant."""

    @property
    def last(self) -> EvaluatedLoss | None:
        """The look after the last update."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def shown(self) -> bool:
        """Whether the training was seen to learn: its loss fell, and is below the constant's."""
        last = self.last
        return last is not None and last.updates > 0 and not last.held and last.loss < self.evaluations[0].loss

    @property
    def whole(self) -> bool:
        """Whether all planned updates were made."""
        last = self.last
        return last is not None and self.planned is not None and last.updates >= self.planned

    @property
    def had_its_chance(self) -> bool:
        """Whether all planned updates were made, or, of an unknown number, many; and they changed what is answered."""
        last = self.last
        if last is None or last.updates < FEWEST_UPDATES:
            return False
        if abs(last.loss - self.evaluations[0].loss) <= SAME_LOSS * abs(self.evaluations[0].loss):
            return False
        return self.whole or (self.planned is None and last.updates >= MANY_UPDATES)

    @property
    def held_at_constant(self) -> bool:
        """Whether the held-out rows are predicted no better than by a constant; others may be known by heart."""
        return self.last is not None and self.last.held
