"""A Keras model's own `train_step`: runs it as fit does and captures its gradients."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from trainwright.adapters.keras.backend import number
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.keras.step_record import StepRecord
from trainwright.tensors.keras.which_keras import keras

_UPDATES = ("apply", "apply_gradients", "stateless_apply")


class OwnStep:
    """The `train_step` of one model."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def run(self, tensors: tuple[Any, Any, Any], record: StepRecord, *, update: bool) -> Any:
        """Take the step; the record receives loss and gradients. Returns what the step logs.

        Args:
            update: False: leave the weights unchanged.
        """
        model = self._model
        model.reset_metrics()
        with self._watched(record, update=update), _functions_run_eagerly(), contextlib.redirect_stdout(io.StringIO()):
            if keras.config.backend() == "jax":
                logs = self._of_states(pack_step(tensors), update=update)
            else:
                logs = passed_on(model.train_step, pack_step(tensors))
        record.loss = loss_of(logs)
        return logs

    def _of_states(self, data: Any, *, update: bool) -> Any:
        model = self._model
        parts = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        logs, states = passed_on(model.train_step, tuple([v.value for v in part] for part in parts), data)
        for part, values in zip(parts, states) if update else ():
            for variable, value in zip(part, values):
                variable.assign(value)
        return logs

    @contextlib.contextmanager
    def _watched(self, record: StepRecord, *, update: bool) -> Iterator[None]:
        """Record the gradients passed to any of the model's optimizers."""
        optimizers = optimizers_of(self._model)
        record.gradients, record.trained = [], []
        for attribute, optimizer in optimizers.items():
            for name in [n for n in _UPDATES if hasattr(optimizer, n)]:
                optimizer.__dict__[name] = self._catching(attribute, name, record, update=update)
        try:
            yield
        finally:
            for optimizer in optimizers.values():
                for name in _UPDATES:
                    optimizer.__dict__.pop(name, None)

    def _catching(self, attribute: str, name: str, record: StepRecord, *, update: bool) -> Any:
        model = self._model
        original = getattr(getattr(model, attribute), name)

        def keep(gradients: Any, variables: Any) -> None:
            record.applied.add(attribute)
            known = {id(v) for v in record.trained}
            for gradient, variable in zip(gradients, variables):
                if id(variable) not in known:
                    record.gradients = [*(record.gradients or []), gradient]
                    record.trained.append(variable)

        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            variables = trainable_variables if trainable_variables is not None else model.trainable_variables
            grads, variables = list(grads), list(variables)
            keep(grads, variables)
            return original(grads, variables) if update else None

        def apply_gradients(grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            keep([g for g, _ in pairs], [v for _, v in pairs])
            return original(pairs, *args, **kwargs) if update else None

        def stateless_apply(optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
            keep(grads, model.trainable_variables)
            return original(optimizer_variables, grads, trainable_variables)

        return {"apply": apply, "apply_gradients": apply_gradients, "stateless_apply": stateless_apply}[name]


@contextlib.contextmanager
def _functions_run_eagerly() -> Iterator[None]:
    """Run tf.functions eagerly, so that gradients inside the step have values."""
    if keras.config.backend() != "tensorflow":
        yield
        return
    config = sys.modules["tensorflow"].config
    before = config.functions_run_eagerly()
    config.run_functions_eagerly(True)
    try:
        yield
    finally:
        config.run_functions_eagerly(before)


def optimizers_of(model: Any) -> dict[str, Any]:
    """A model's optimizers by attribute, the compiled one first."""
    found = {"optimizer": model.optimizer} if model.optimizer is not None else {}
    for name, value in vars(model).items():
        if isinstance(value, keras.optimizers.Optimizer) and not any(value is one for one in found.values()):
            found[name] = value
    return found


def pack_step(tensors: tuple[Any, Any, Any]) -> Any:
    """Inputs, targets and weights as fit passes them to a step."""
    x, y, weight = tensors
    if y is None and weight is None:
        return (x,) if isinstance(x, (list, tuple)) else x
    return (x, y) if weight is None else (x, y, weight)


def loss_of(logs: Any) -> float | None:
    """The loss in a step's logs: the entry "loss", otherwise the sum of those with that suffix, otherwise the first."""
    if not isinstance(logs, dict):
        return number(logs) if not isinstance(logs, (list, tuple)) else None
    values = {k: number(v) for k, v in logs.items() if not isinstance(v, dict)}
    if values.get("loss") is not None:
        return values["loss"]
    losses = [v for k, v in values.items() if k.endswith("loss") and v is not None]
    return sum(losses) if losses else next((v for v in values.values() if v is not None), None)
