"""A layer that raised, its declared size and its input's size."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from trainwright.core import Call, Failure, Place, Repair, Seam
from trainwright.frameworks.error_texts import TAKES
from trainwright.stages import ForwardFacts, ModuleFacts


@dataclass(frozen=True)
class SizeMismatch:
    """A layer whose declared size differs from its input's."""

    layer: ModuleFacts
    failure: Failure
    argument: str
    """The argument that sets its size."""
    axis: int
    """The input's axis that must have that size."""
    shape: tuple[int, ...]
    wanted: int
    came: int

    @property
    def lacks_flatten(self) -> bool:
        """Whether a row, once flattened, would have the size that a linear layer expects."""
        return len(self.shape) > 2 and self._is_matrix and prod(self.shape[1:]) == self.wanted

    @property
    def lacks_channels(self) -> bool:
        """Whether a convolution with one input channel gets rows without a channel axis."""
        dimensions = self.layer.kind.removeprefix("Conv")[:1]
        is_convolution = self.layer.kind.startswith("Conv") and dimensions.isdigit()
        held = self.wanted in self.shape[1:]
        return is_convolution and self.wanted == 1 and not held and len(self.shape) == int(dimensions) + 1

    @property
    def lacks_columns(self) -> bool:
        """Whether a linear layer of one feature gets one number per row without an axis for it."""
        return self._is_matrix and self.wanted == 1 and len(self.shape) == 1

    @property
    def has_other_rank(self) -> bool:
        """Whether the number of axes is wrong, not the size of one."""
        return self.lacks_flatten or self.lacks_channels or self.lacks_columns

    @property
    def _is_matrix(self) -> bool:
        return self.argument == "in_features"

    @property
    def message(self) -> str:
        takes = f"{self.argument} {self.wanted}" if self.layer.fixed_size else f"{self.argument}={self.wanted}"
        return (
            f"{self.layer.name} ({self.layer.kind}) expects {takes}, but its input has shape {self.shape}, "
            f"with size {self.came} in dimension {self.axis % len(self.shape)}"
        )

    @property
    def measured(self) -> dict[str, float | int | str]:
        return {"layer": self.layer.name, "declared": self.wanted, "came": self.came, "shape": str(self.shape)}

    @property
    def where(self) -> Place | None:
        called_at = self.failure.where if self.lacks_columns else None
        return called_at or self.layer.where or self.failure.where


def size_mismatch(forward: ForwardFacts) -> SizeMismatch | None:
    """A layer with a declared size that raised on an input of another size."""
    layer, failure = forward.failed_module, forward.failure
    if layer is None or failure is None:
        return None
    argument, axis = TAKES.get(layer.kind, ("", -1))
    shape = layer.inputs[0].shape if layer.inputs else ()
    if not argument or not layer.sizes or not shape:
        return None
    wanted, came = layer.sizes[0], shape[axis] if len(shape) > axis else 0
    found = SizeMismatch(
        layer=layer, failure=failure, argument=argument, axis=axis, shape=shape, wanted=wanted, came=came
    )
    if found.lacks_columns:  # a single row fits by chance
        return found if came != 1 else None
    return found if wanted != came and len(shape) > 1 and forward.works_at_rows is None else None


def resize(name: str, size: int) -> Repair:
    """Rebuild a layer for another input size."""

    def change(call: Call) -> Call:
        call.tensors.resize_input(call["model"], name, size)
        return call

    return Repair(f"build {name} for an input of size {size}", Seam.TRAINER, change)
