"""What differs between Keras's backends: how gradients are had, how a step is taken, what compiling changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from trainwright.tensors import keras as tensors
from trainwright.tensors.keras_own import keras, own


class Backend(Protocol):
    """One of Keras's backends."""

    name: str

    def gradients(
        self, compute: Callable[[], Any], variables: Sequence[Any], others: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """The loss that `compute` gives, and its gradients by the variables' values; None where none arrives.

        Args:
            others: variables that `compute` may assign to.
        """

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function of tensors as a compiler runs it."""

    def device(self, variable: Any) -> str:
        """cpu, cuda, tpu."""


class TensorFlow:
    """GradientTape, eagerly."""

    name = "tensorflow"

    def gradients(
        self, compute: Callable[[], Any], variables: Sequence[Any], others: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = compute()
        values = [own().raw(v) for v in variables]
        if not isinstance(loss, tf.Tensor):
            loss = tf.convert_to_tensor(loss)
        found = tape.gradient(loss, values)
        return loss, [tf.convert_to_tensor(g) if g is not None else None for g in found]

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        import tensorflow as tf

        return tf.function(call, jit_compile=True)  # type: ignore[no-any-return]

    def device(self, variable: Any) -> str:
        name = str(own().raw(variable).device).rpartition("device:")[2].split(":")[0].lower()
        return "cuda" if name == "gpu" else name or "cpu"


class Torch:
    """autograd."""

    name = "torch"

    def gradients(
        self, compute: Callable[[], Any], variables: Sequence[Any], others: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        import torch

        for variable in variables:
            variable.value.grad = None
        with torch.enable_grad():
            loss = compute()
            if not loss.requires_grad:
                return loss, [None for _ in variables]
            found = torch.autograd.grad(loss, [v.value for v in variables], allow_unused=True)
        return loss, list(found)

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return call

    def device(self, variable: Any) -> str:
        return str(variable.value.device.type)


class Jax:
    """jax.value_and_grad over the variables' values; what else was assigned on the way is kept."""

    name = "jax"

    def gradients(
        self, compute: Callable[[], Any], variables: Sequence[Any], others: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        import jax

        kept = [v for v in others if not any(v is w for w in variables)]

        def run(values: list[Any]) -> tuple[Any, list[Any]]:
            mapping = list(zip(variables, values))
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
                loss = compute()
            return loss, [scope.get_current_value(v) for v in kept]

        (loss, written), found = jax.value_and_grad(run, has_aux=True)([v.value for v in variables])
        for variable, value in zip(kept, written):
            if value is not None:
                variable.assign(value)
        return loss, list(found)

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return call

    def device(self, variable: Any) -> str:
        kind = next(iter(variable.value.devices())).platform
        return "cuda" if kind in ("gpu", "cuda") else str(kind)


def backend_of() -> Backend:
    """The backend that Keras runs on."""
    return {"tensorflow": TensorFlow, "torch": Torch, "jax": Jax}[keras.config.backend()]()


def number(value: Any) -> float | None:
    """A loss as a number; None where it is none."""
    if value is None:
        return None
    array = tensors.to_numpy(value)
    return float(array.reshape(-1)[0]) if array.size == 1 else None
