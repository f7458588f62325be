"""The operations on a framework's objects that stages, rules' repairs and trials may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from trainwright.stages.tensor import TensorFacts


class Tensors(Protocol):
    """One framework's tensors, models and optimizers. A module satisfies it by having these names."""

    def is_tensor(self, value: Any) -> bool:
        """Whether it is one of the framework's tensors."""

    def facts(self, tensor: Any) -> TensorFacts:
        """The tensor in numbers."""

    def to_numpy(self, tensor: Any) -> np.ndarray:
        """Its values on the host; half precision becomes float32."""

    def like(self, array: np.ndarray, reference: Any, dtype: str | None = None) -> Any:
        """A tensor of these values, on the reference's device and of its dtype, or of `dtype`."""

    def cast(self, tensor: Any, dtype: str) -> Any:
        """The tensor as another dtype: int64, float32."""

    def reshape(self, tensor: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape."""

    def log(self, tensor: Any) -> Any:
        """The natural logarithm, of values kept at or above 1e-12, with its gradient."""

    def logit(self, tensor: Any) -> Any:
        """The inverse of the sigmoid, of values kept within 1e-6 of (0, 1), with its gradient."""

    def permute(self, tensor: Any, axes: Sequence[int]) -> Any:
        """The tensor with its axes in another order."""

    def set_learning_rate(self, optimizer: Any, *, factor: float | None = None, rate: float | None = None) -> None:
        """Scale every group's rate, or set them all."""

    def unfreeze(self, model: Any, optimizer: Any, names: Sequence[str] | None = None) -> None:
        """Let the named parameters (all: None) be trained, at the optimizer's largest rate."""

    def widen_head(self, model: Any, classes: int) -> str:
        """Give the model's output layer `classes` outputs, its old ones kept; return the layer's name."""

    def resize_embeddings(self, model: Any, rows: int) -> None:
        """Give the input embedding (and a tied output) at least `rows` rows."""

    def set_dropout(self, model: Any, probability: float) -> None:
        """Set the probability of every dropout layer."""

    def set_training(self, model: Any, training: bool) -> None:
        """Put the model and all its modules in training or evaluation mode."""


Batch = Mapping[str, Any]
