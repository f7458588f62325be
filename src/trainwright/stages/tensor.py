"""A summary of one tensor in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TensorFacts:
    """Summary statistics of a tensor. They cover finite values only; None if there are none."""

    shape: tuple[int, ...]
    dtype: str
    """The framework's name without its prefix: int64, float32, bfloat16, bool."""
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    non_finite: int = 0
    """Number of values that are NaN or infinite."""
    zero_share: float = 0.0
    requires_grad: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return "float" in self.dtype

    @property
    def is_integer(self) -> bool:
        """Whether it holds integers (bool is not one)."""
        return self.dtype.startswith(("int", "uint"))
