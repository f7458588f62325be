"""Where along the pipeline a probe can read the label: measured when a training was not seen to learn."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Place

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
