"""Differences between Keras's backends: computing gradients, compiling a step, finding a variable's device."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from trainwright.core import Repair, Seam
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version
from trainwright.timing import now

# Repairs that are applied while a step is traced: others in force mean another step.
_WITHIN = (Seam.LOSS, Seam.FORWARD, Seam.ACTIVATION, Seam.CUT)
# Attributes that an optimizer reads as plain numbers during tracing.
_NUMBERS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "momentum", "beta_1", "beta_2", "epsilon")

Loss = Callable[[Any], Any]
"""The loss of a batch: (inputs, targets, weights)."""


def as_it_is(value: Any) -> Any:
    return value


def scaling_of(optimizer: Any) -> Callable[[Any], Any]:
    """How a step of fit scales the loss, or the gradients, before this optimizer divides them by its loss scale."""
    found: Callable[[Any], Any] = getattr(optimizer, "scale_loss", as_it_is)  # Keras 2 works differently
    return found


class Backend:
    """One of Keras's backends; what they have in common, or do as torch does: eager autograd."""

    name = "torch"

    def __init__(self) -> None:
        self._steps: dict[Hashable, Any] = {}

    def gradients(
        self,
        compute: Loss,
        data: Any,
        variables: Sequence[Any],
        others: Sequence[Any],
        scale: Callable[[Any], Any] = as_it_is,
    ) -> tuple[Any, list[Any]]:
        """The loss of the data, and its gradients with respect to the variables; None if a variable gets none.

        Args:
            others: variables that `compute` may assign to.
            scale: applied to the loss before differentiation; the returned loss is unscaled.
        """
        import torch

        for variable in variables:
            variable.value.grad = None
        with torch.enable_grad():
            loss = compute(data)
            if not loss.requires_grad:
                return loss, [None for _ in variables]
            found = torch.autograd.grad(scale(loss), [v.value for v in variables], allow_unused=True)
        return loss, list(found)

    def apply(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Update the variables once, outside of compiled steps.

        Args:
            gradients: of the scaled loss if the optimizer scales it.
        """
        import torch

        with torch.no_grad():
            optimizer.apply(gradients, variables)

    def step(self, compute: Loss, data: Any, model: Any, others: Sequence[Any], key: Hashable) -> Any:
        """Take one step with its update, compiled if that pays; returns the loss.

        Args:
            key: identifies the compiled step; an equal key reuses it.
        """
        variables = list(model.trainable_variables)
        loss, found = self.gradients(compute, data, variables, others, scaling_of(model.optimizer))
        self.apply(model.optimizer, found, variables)
        return loss

    def answer(self, model: Any, x: Any, mode: Mapping[str, Any]) -> Any:
        """The model's output as a step of fit computes it.

        Args:
            mode: `training`, if fit passes it to the model.
        """
        return model(x, **mode)

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function of tensors as a compiler runs it."""
        return call

    def device(self, variable: Any) -> str:
        """The variable's device: cpu, cuda or tpu."""
        return str(variable.value.device.type)


class TensorFlow(Backend):
    """GradientTape; a step is a graph, as in fit."""

    name = "tensorflow"

    def gradients(
        self,
        compute: Loss,
        data: Any,
        variables: Sequence[Any],
        others: Sequence[Any],
        scale: Callable[[Any], Any] = as_it_is,
    ) -> tuple[Any, list[Any]]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = compute(data)
            scaled = tf.convert_to_tensor(scale(loss))
        found = tape.gradient(scaled, [version().raw(v) for v in variables])
        return loss, [tf.convert_to_tensor(g) if g is not None else None for g in found]

    def apply(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        optimizer.apply_gradients(list(zip(gradients, variables)))

    def step(self, compute: Loss, data: Any, model: Any, others: Sequence[Any], key: Hashable) -> Any:
        import tensorflow as tf

        if key not in self._steps:

            def whole(batch: Any) -> Any:
                variables = list(model.trainable_variables)
                scale = scaling_of(model.optimizer)
                loss, found = self.gradients(compute, batch, variables, others, scale)
                self.apply(model.optimizer, found, variables)
                return loss

            self._steps[key] = tf.function(whole, reduce_retracing=True, autograph=False)
        return self._steps[key](data)

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        import tensorflow as tf

        return tf.function(call, jit_compile=True)  # type: ignore[no-any-return]

    def device(self, variable: Any) -> str:
        name = str(version().raw(variable).device).rpartition("device:")[2].split(":")[0].lower()
        return "cuda" if name == "gpu" else name or "cpu"


class Jax(Backend):
    """jax.value_and_grad over the variables' values; other assigned variables are kept."""

    name = "jax"

    def gradients(
        self,
        compute: Loss,
        data: Any,
        variables: Sequence[Any],
        others: Sequence[Any],
        scale: Callable[[Any], Any] = as_it_is,
    ) -> tuple[Any, list[Any]]:
        import jax

        kept = _without(others, variables)
        run = jax.jit(_gradient(compute, variables, kept, scale))
        loss, found, written = run([v.value for v in variables], [v.value for v in kept], data)
        _assign(kept, written)
        return loss, list(found)

    def apply(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        if not hasattr(optimizer, "inner_optimizer"):
            optimizer.apply(gradients, variables)
            return
        # A loss scale checks in a branch whether the gradients are finite, and JAX forbids assignments there.
        kept = list(optimizer.variables)
        values, written = optimizer.stateless_apply([v.value for v in kept], gradients, [v.value for v in variables])
        _assign([*variables, *kept], [*values, *written])

    def step(self, compute: Loss, data: Any, model: Any, others: Sequence[Any], key: Hashable) -> Any:
        import jax

        variables = list(model.trainable_variables)
        kept = _without([*others, *model.optimizer.variables], variables)
        if key not in self._steps:
            gradient = _gradient(compute, variables, kept, scaling_of(model.optimizer))

            def whole(values: list[Any], rest: list[Any], batch: Any) -> Any:
                loss, found, written = gradient(values, rest, batch)
                now = [w if w is not None else r for w, r in zip(written, rest)]
                mapping = [*zip(variables, values), *zip(kept, now)]
                with keras.StatelessScope(state_mapping=mapping) as scope:
                    self.apply(model.optimizer, found, variables)
                return loss, [scope.get_current_value(v) for v in (*variables, *kept)]

            self._steps[key] = jax.jit(whole)
        loss, written = self._steps[key]([v.value for v in variables], [v.value for v in kept], data)
        _assign([*variables, *kept], written)
        return loss

    def answer(self, model: Any, x: Any, mode: Mapping[str, Any]) -> Any:
        # fit calls stateless_call, which runs only the model's `call`: inner layers are not told their mode.
        call = model.call

        def untold(*args: Any, **kwargs: Any) -> Any:
            model._get_call_context().training = None
            return call(*args, **kwargs)

        object.__setattr__(model, "call", untold)
        try:
            return model(x, **mode)
        finally:
            vars(model).pop("call")

    def device(self, variable: Any) -> str:
        kind = next(iter(variable.value.devices())).platform
        return "cuda" if kind in ("gpu", "cuda") else str(kind)


def _gradient(
    compute: Loss, variables: Sequence[Any], kept: Sequence[Any], scale: Callable[[Any], Any]
) -> Callable[..., Any]:
    """(loss, gradients, values written to the kept variables) as a function of both kinds' values and the data."""

    def gradient(values: list[Any], rest: list[Any], data: Any) -> Any:
        import jax

        def run(tried: list[Any]) -> tuple[Any, Any]:
            mapping = [*zip(variables, tried), *zip(kept, rest)]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
                loss = compute(data)
                scaled = scale(loss)
            return scaled, (loss, [scope.get_current_value(v) for v in kept])

        (_, (loss, written)), found = jax.value_and_grad(run, has_aux=True)(values)
        return loss, found, written

    return gradient


def _without(variables: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The variables that are not among the others, each once."""
    skip = {id(v) for v in others}
    return list({id(v): v for v in variables if id(v) not in skip}.values())


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values):
        if value is not None:
            variable.assign(value)


def backend_of() -> Backend:
    """The backend that Keras runs on."""
    kinds: dict[str, Callable[[], Backend]] = {"tensorflow": TensorFlow, "torch": Backend, "jax": Jax}
    return kinds[keras.config.backend()]()


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


def number(value: Any) -> float | None:
    """A loss as a number; None if it is not one."""
    if value is None:
        return None
    array = tensors.to_numpy(value)
    return float(array.reshape(-1)[0]) if array.size == 1 else None


def takes_all_memory() -> bool:
    """Whether TensorFlow takes nearly all memory of a visible GPU when it first uses it."""
    if keras.config.backend() != "tensorflow" or os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH") == "true":
        return False
    import tensorflow as tf

    return any(not _is_bounded(tf.config, gpu) for gpu in tf.config.get_visible_devices("GPU"))


def _is_bounded(config: Any, gpu: Any) -> bool:
    """Whether the GPU's memory is allocated as needed, or up to a limit."""
    parts = config.get_logical_device_configuration(gpu) or ()
    return bool(config.experimental.get_memory_growth(gpu)) or any(p.memory_limit for p in parts)
