"""What guessing would give: a metric's values for a constant and for a random answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The values that a metric has for answers that know nothing of the inputs."""

    constant: float | None = None
    """For the best constant answer: the most frequent class, its share as the score, or the mean. None: not known."""
    random: float | None = None
    """For the labels in random order, in the mean of several draws. None: not known."""
