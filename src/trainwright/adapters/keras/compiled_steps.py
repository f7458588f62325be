"""A Keras model's compiled steps, each stored under what it was compiled for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from trainwright.adapters.keras.backend import Backend
from trainwright.core.repair import Repair, Seam
from trainwright.tensors.keras.which_keras import version
from trainwright.timing import now

# Repairs that are applied while a step is traced: others in force mean another step.
_WITHIN = (Seam.LOSS, Seam.FORWARD, Seam.ACTIVATION, Seam.CUT)
# Attributes that an optimizer reads as plain numbers during tracing.
_NUMBERS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "momentum", "beta_1", "beta_2", "epsilon")


class CompiledSteps:
    """Steps of one model, compiled again when something they were traced with changes."""

    def __init__(self, model: Any, backend: Backend) -> None:
        self._model, self._backend = model, backend
        self._alive: dict[Hashable, Any] = {}
        """The objects that a key names by id, kept alive so that no other object gets that id."""
        self.compiling_seconds = 0.0

    def take(self, compute: Callable[[Any], Any], data: Any, others: Sequence[Any], repairs: Sequence[Repair]) -> Any:
        """Take one step with its update; returns the loss.

        Args:
            others: variables that `compute` may assign to.
            repairs: the repairs in force.
        """
        started, optimizer = now(), self._model.optimizer
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        variables, rate = ([*self._model.trainable_variables, *version().slots(optimizer)], version().rate(inner))
        key = (
            *(id(version().cell(v) if self._backend.name != "jax" else v) for v in variables),
            *(r.does for r in repairs if r.seam in _WITHIN),
            id(rate),
            *(getattr(inner, name, None) for name in _NUMBERS),
            *(
                tuple(getattr(la, name, None) for name in ("rate", "units", "mask_zero"))
                for la in self._model._flatten_layers()
            ),
        )
        loss = self._backend.step(compute, data, self._model, others, key)
        if key not in self._alive:
            self._alive[key] = (variables, rate)
            self.compiling_seconds += now() - started
        return loss
