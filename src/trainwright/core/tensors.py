"""The operations that repairs can use on a framework's objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class Tensors(Protocol):
    """One framework's tensors, models and optimizers. A module satisfies it by having these names (`tensors/`).

    An operation that makes no sense for a framework raises PartMissing there, with the reason.
    """

    def is_tensor(self, value: Any) -> bool:
        """Whether the object is one of the framework's tensors."""

    def facts(self, tensor: Any) -> Any:
        """The tensor in numbers (`stages/tensor.py`)."""

    def to_numpy(self, tensor: Any) -> Any:
        """Its values on the host, as a NumPy array; half precision becomes float32."""

    def like(self, array: Any, reference: Any, dtype: str | None = None) -> Any:
        """A tensor with these values, on the reference's device, with its dtype or `dtype`."""

    def cast(self, tensor: Any, dtype: str) -> Any:
        """The tensor cast to another dtype: int64, float32."""

    def reshape(self, tensor: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape."""

    def renumbered(self, tensor: Any, numbers: Mapping[int, int]) -> Any:
        """The tensor with some values replaced; computed with framework operations, so that it can be traced."""

    def log(self, tensor: Any) -> Any:
        """The natural logarithm of the values, clamped to at least 1e-12, with its gradient."""

    def log_softmax(self, tensor: Any) -> Any:
        """The log-probabilities over axis 1, with their gradient."""

    def logit(self, tensor: Any) -> Any:
        """The inverse sigmoid of the values, clamped to 1e-6 inside (0, 1), with its gradient."""

    def permute(self, tensor: Any, axes: Sequence[int]) -> Any:
        """The tensor with its dimensions permuted."""

    def set_learning_rate(self, optimizer: Any, *, factor: float | None = None, rate: float | None = None) -> None:
        """Scale the rate of every parameter group, or set them all."""

    def set_weight_decay(self, optimizer: Any, value: float) -> None:
        """Set the weight decay of every parameter group."""

    def unfreeze(self, model: Any, optimizer: Any, names: Sequence[str] | None = None) -> None:
        """Unfreeze the named parameters (None: all), at the optimizer's largest rate (None: no optimizer yet)."""

    def hold_parameters(self, optimizer: Any, model: Any) -> None:
        """Make the optimizer hold the model's trainable parameters and no others."""

    def set_padding(self, model: Any, token: int) -> None:
        """Set the model's padding token."""

    def freeze(self, model: Any, names: Sequence[str]) -> None:
        """Freeze the named parameters."""

    def clear_gradients(self, model: Any) -> None:
        """Clear the gradient of every parameter."""

    def clip_gradients(self, optimizer: Any, norm: float) -> None:
        """Clip the gradient to a norm before each optimizer step."""

    def detached(self, value: Any) -> Any:
        """The value, or the tensors in it, detached from the graph."""

    def detach_kept(self, model: Any) -> None:
        """Detach the tensors in the model's attributes from the graph of the step that made them."""

    def register_lists(self, model: Any, names: Sequence[str]) -> None:
        """Register the plain lists (or dictionaries) of layers at these paths with the model."""

    def normalise_rows(self, tensor: Any) -> Any:
        """The tensor standardized over its last dimension, with its gradient."""

    def widen_head(self, model: Any, classes: int) -> str:
        """Resize the model's output layer to `classes` outputs, keeping the old ones; return the layer's name."""

    def resize_embeddings(self, model: Any, rows: int, name: str = "") -> None:
        """Resize the named embedding to `rows` rows; without a name, the input embedding and its token output."""

    def set_dropout(self, model: Any, probability: float) -> None:
        """Set the probability of every dropout layer."""

    def mask_padding(self, model: Any, embedding: str) -> None:
        """Make an embedding mask token 0 for the layers after it."""

    def change_rows(self, data: Any, change: Callable[[dict[str, Any], int], Mapping[str, Any]]) -> Any:
        """The data set with each item changed when it is read; the change gets the item and its row."""

    def choose_rows(self, data: Any, rows: Sequence[int]) -> Any:
        """The data set restricted to these rows."""

    def choose_of_several(self, sets: Sequence[Any], rows: Sequence[tuple[int, int]]) -> Any:
        """A data set with rows from several sets, each row given as (index of the set, row in it)."""

    def predicted_classes(self, scores: Any, labels: Any) -> Any:
        """The classes that the scores predict, one per label; None if their shapes do not match."""

    def padded(self, rows: Sequence[Any]) -> list[Any]:
        """Tensors, arrays or lists that differ along one dimension, padded with zeros to the longest."""

    def standardise(self, tensor: Any) -> Any:
        """The tensor with each row standardized, with its gradient."""

    def take_rows(self, batch: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """The first rows of every tensor in a batch with as many rows as the first; with torch, of lists too."""

    def zero_non_finite(self, model: Any) -> None:
        """Set NaN and infinity among the model's weights and buffers to zero."""

    def reinitialise(self, model: Any, names: Sequence[str]) -> None:
        """Reinitialize these parameters as the framework's own layers do."""

    def scale_parameters(self, model: Any, factors: Mapping[str, float]) -> None:
        """Multiply the named parameters."""

    def activate(self, model: Any, names: Sequence[str]) -> None:
        """Put these modules in training mode whenever gradients are computed."""

    def resize_input(self, model: Any, layer: str, size: int) -> None:
        """Rebuild a layer for inputs of this size (an embedding: for indices below this size)."""

    def flatten_before(self, model: Any, layer: str) -> None:
        """Flatten all dimensions of a layer's input except the first."""

    def shuffled(self, dataset: Any) -> Any:
        """The same rows in a fixed random order; for an iterable set, its first rows."""

    def rename_outputs(self, model: Any, role: str, names: Mapping[str, str]) -> None:
        """Rename keys in one of the dictionaries that a model was compiled with.

        Args:
            role: loss, loss_weights or metrics; for the targets (`labels`), the outputs are renamed instead.
            names: the existing keys, with their new names.
        """

    def give_no_loss(self, model: Any, names: Sequence[str]) -> None:
        """Add these outputs to the dictionary of a model's losses, with None."""


def shifts(numbers: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Values and their new numbers, grouped into runs that shift equally: first value, last value, shift."""
    found: list[tuple[int, int, int]] = []
    for value in sorted(numbers):
        by = numbers[value] - value
        if found and found[-1][1] == value - 1 and found[-1][2] == by:
            found[-1] = (found[-1][0], value, by)
        else:
            found.append((value, value, by))
    return found
