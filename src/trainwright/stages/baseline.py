"""Stage 9, baseline: a short run over several batches against a constant prediction on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class BaselineFacts(Facts):
    """The losses of the model and of a constant prediction, in the script's unit, on the same rows."""

    stage = Stage.BASELINE
    first: float
    """Mean loss over the first steps, before learning."""
    last: float
    """Mean loss over the last pass of the short run, after training on these rows."""
    constant: float | None
    """The loss of the best constant prediction (class frequencies, or the mean)."""
    steps: int
    predicted_classes: int | None = None
    label_classes: int | None = None
