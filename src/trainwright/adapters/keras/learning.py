"""Fresh batches of a fit, and its validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trainwright.adapters.base import EvaluatedBatch
from trainwright.adapters.keras.input.nested_values import leaves, name_arrays
from trainwright.adapters.keras.input.one_batch import FitBatch, X
from trainwright.adapters.learning import ForwardPass, Trained, read_batches
from trainwright.probes.information import sketch
from trainwright.seams.keras.layers import traced

if TYPE_CHECKING:
    from trainwright.adapters.keras.training import FitTraining


class FitLearner(Trained):
    """The batches of a model that is about to be fitted."""

    training: FitTraining

    def __init__(self, training: FitTraining) -> None:
        self.training = training

    def fresh(self, most: int, seconds: float) -> list[FitBatch]:
        return read_batches(self.training.data.in_training_order, seconds, lambda batch: 1 / most)

    def held_out(self, rows: int, seconds: float) -> list[FitBatch]:
        validation = self.training.data.validation
        begin = validation.elements if validation is not None else tuple
        return read_batches(begin, seconds, lambda batch: batch.rows / rows)

    def count_rows(self, batch: FitBatch) -> int:
        arrays = [np.asarray(a) for part in (batch.x, batch.y, batch.sample_weight) for a in leaves(part)]
        return 0 if batch.is_row or any(len(a) != batch.rows for a in arrays) else batch.rows

    def passed(self, batch: FitBatch, chosen: frozenset[int] | None) -> ForwardPass | None:
        training, rows = self.training, batch.rows

        def keep(values: np.ndarray) -> np.ndarray | None:
            fits = values.ndim > 0 and len(values) == rows and values.dtype.kind == "f"
            return sketch(values) if fits else None

        with traced(training.model, training.seen, keep) as results:
            judged_loss = self.judged(batch)
        given = {n: np.asarray(v) for n, v in name_arrays(batch.x, X)}
        if judged_loss is None or any(
            v.dtype.kind not in "iufb" or not v.ndim or len(v) != rows for v in given.values()
        ):
            return None
        return ForwardPass(given=given, results=results, losses=judged_loss.losses)

    def judged(self, batch: FitBatch) -> EvaluatedBatch | None:
        return self.training.evaluate(batch)
