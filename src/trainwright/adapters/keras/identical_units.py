"""Whether a Keras layer's units that start equal stay equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainwright.adapters.keras.input.one_batch import Batch
from trainwright.adapters.keras.training import FitTraining
from trainwright.probes.forward import units_equal
from trainwright.stages.forward import STEP_LENGTH, STEPS_UNTIL_DIFFERENT, ParameterFacts
from trainwright.tensors.keras import objects as tensors


def stay_identical(parameters: Sequence[ParameterFacts], fit: FitTraining, batch: Batch) -> tuple[ParameterFacts, ...]:
    """The facts, with whether equal units stay equal over some steps; the weights are left as the steps made them."""
    suspects = {p.name for p in parameters if p.identical_rows and p.trainable}
    if not suspects:
        return tuple(parameters)
    reached: set[int] = set()
    for _ in range(STEPS_UNTIL_DIFFERENT):
        record = fit.step_gradients(batch, fit.observer(detail=False))
        pairs = zip(record.trained, record.gradients or ())
        moved = [(v, tensors.to_numpy(g)) for v, g in pairs if g is not None]
        reached |= {id(v) for v, _ in moved}
        norm = float(np.sqrt(sum(np.square(g, dtype=np.float64).sum() for _, g in moved))) or 1.0
        for variable, gradient in moved:  # one step length for all, so that a gradient of rounding noise stays small
            variable.assign(tensors.value_of(variable) - (STEP_LENGTH / norm * gradient).astype(gradient.dtype))
    variables = {name: v for name, (_, v) in tensors.named_variables(fit.model).items()}
    return tuple(
        replace(p, identical_after_steps=units_equal(tensors.value_of(variables[p.name]), -1))
        if p.name in suspects and id(variables[p.name]) in reached
        else p
        for p in parameters
    )
