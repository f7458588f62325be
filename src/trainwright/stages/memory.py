"""What a training holds in memory whatever its batch is, from its weights and its optimizer's class: no step is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass

# How many numbers an optimizer keeps for each trainable one, by the beginning of its class's name or of its setting's.
_KEPT = {
    **dict.fromkeys(("adamax", "adamw", "adam", "nadam", "radam", "lamb", "adadelta", "rprop"), 2),
    **dict.fromkeys(("rmsprop", "adagrad", "lion"), 1),
    "sgd": 0,
}
# Names that begin like these, of optimizers that keep fewer bits for each number.
_SMALLER = re.compile(r"8bit|4bit|anyprecision", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class PlannedMemory:
    """The bytes of weights, of their gradients, and of the optimizer's state; 0: that class's state is not known."""

    weights_bytes: int
    gradients_bytes: int
    state_bytes: int = 0
    state_known: bool = False


def planned_memory(
    weights_bytes: int, gradients_bytes: int, optimizer: str, *, momentum: bool = False
) -> PlannedMemory:
    """The memory of a training without its batch.

    Args:
        optimizer: its class, or the framework's name for it (AdamW, adamw_torch_fused).
        momentum: it keeps one more number for each trainable one.
    """
    name = re.split(r"_", optimizer.lower())[0]
    kept = None if _SMALLER.search(optimizer) else _KEPT.get(name)
    state = gradients_bytes * (kept + momentum) if kept is not None else 0
    return PlannedMemory(
        weights_bytes=weights_bytes, gradients_bytes=gradients_bytes, state_bytes=state, state_known=kept is not None
    )
