"""What Accelerate stores in addition to the model and the optimizer, and what it wraps around them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trainwright.seams.failures.blame import passed_on


def accelerator_of(values: Iterable[Any]) -> Any:
    """The first Accelerator among some objects, or None."""
    module = sys.modules.get("accelerate.accelerator")
    kind = getattr(module, "Accelerator", None)
    return next((v for v in values if kind is not None and isinstance(v, kind)), None)


def framework_of(values: Iterable[Any]) -> str:
    """`accelerate` if an Accelerator is in reach, otherwise `torch`."""
    return "torch" if accelerator_of(values) is None else "accelerate"


def wrapped_objects(values: Iterable[Any]) -> list[Any]:
    """The optimizers, schedules and loaders that `prepare` made, whether or not the script has names for them."""
    accelerator = accelerator_of(values)
    if accelerator is None:
        return []
    return [accelerator, *accelerator._optimizers, *accelerator._schedulers, *accelerator._dataloaders]


def scalers_of(values: Iterable[Any]) -> list[Any]:
    """GradScalers among some objects, including the Accelerator's own."""
    found = [*values]
    scaler = getattr(accelerator_of(found), "scaler", None)
    unique = {id(v): v for v in [*found, scaler] if type(v).__name__ == "GradScaler"}
    return list(unique.values())


def precision_of(values: Iterable[Any]) -> str | None:
    """The precision of an Accelerator's forward passes (bf16, fp16); None without one, or for float32."""
    found = getattr(accelerator_of(values), "mixed_precision", None)
    return found if found in ("bf16", "fp16") else None


def steps_at_end(values: Iterable[Any]) -> bool:
    """Whether a loader's last batches make an update even if they do not fill the accumulation window."""
    state = getattr(accelerator_of(values), "gradient_state", None)
    return bool(getattr(state, "sync_with_dataloader", False))


@contextlib.contextmanager
def scaled_losses(values: Iterable[Any]) -> Iterator[list[tuple[Any, float]]]:
    """What the gradient scalers multiply while the context lasts: the product, and its factor."""
    found: list[tuple[Any, float]] = []
    scalers = [scaler for scaler in scalers_of(values) if scaler.is_enabled()]

    def watched(scaler: Any, original: Any) -> Any:
        def scale(outputs: Any) -> Any:
            product = passed_on(original, outputs)
            found.append((product, float(scaler.get_scale())))
            return product

        return scale

    for scaler in scalers:
        scaler.scale = watched(scaler, scaler.scale)
    try:
        yield found
    finally:
        for scaler in scalers:
            scaler.__dict__.pop("scale", None)


@contextlib.contextmanager
def scaled_steps(optimizers: Sequence[Any], values: Iterable[Any]) -> Iterator[None]:
    """Redirect steps that go through a scaler, which Accelerate captured at `prepare`, to the current step methods."""
    wrapped = [w for w in wrapped_objects(values) if hasattr(w, "_optimizer_patched_step_method")]
    wrapped = [w for w in wrapped if any(w.optimizer is o for o in optimizers)]
    kept = [(w, dict(w.__dict__)) for w in wrapped]
    for wrapper in wrapped:
        wrapper._optimizer_original_step_method = wrapper.optimizer.step
        wrapper._optimizer_patched_step_method = _marking(wrapper, wrapper.optimizer.step)
    try:
        yield
    finally:
        for wrapper, attributes in kept:
            for name in ("_optimizer_original_step_method", "_optimizer_patched_step_method"):
                setattr(wrapper, name, attributes[name])


def _marking(wrapper: Any, step: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        wrapper._accelerate_step_called = True
        return step(*args, **kwargs)

    return call
