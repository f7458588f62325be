"""What rules' repairs may do with a framework's objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class Tensors(Protocol):
    """One framework's tensors, models and optimizers. A module satisfies it by having these names (`tensors/`).

    An operation that a framework has no use for raises PartMissing there, with the reason.
    """

    def is_tensor(self, value: Any) -> bool:
        """Whether it is one of the framework's tensors."""

    def facts(self, tensor: Any) -> Any:
        """The tensor in numbers (`stages/tensor.py`)."""

    def to_numpy(self, tensor: Any) -> Any:
        """Its values on the host, as an array of NumPy's; half precision becomes float32."""

    def like(self, array: Any, reference: Any, dtype: str | None = None) -> Any:
        """A tensor of these values, on the reference's device and of its dtype, or of `dtype`."""

    def cast(self, tensor: Any, dtype: str) -> Any:
        """The tensor as another dtype: int64, float32."""

    def reshape(self, tensor: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape."""

    def renumbered(self, tensor: Any, numbers: Mapping[int, int]) -> Any:
        """The tensor with some of its values as others; computed as the loss is, so that it can be traced."""

    def log(self, tensor: Any) -> Any:
        """The natural logarithm, of values kept at or above 1e-12, with its gradient."""

    def log_softmax(self, tensor: Any) -> Any:
        """The log-probabilities over axis 1, with their gradient."""

    def logit(self, tensor: Any) -> Any:
        """The inverse of the sigmoid, of values kept within 1e-6 of (0, 1), with its gradient."""

    def permute(self, tensor: Any, axes: Sequence[int]) -> Any:
        """The tensor with its axes in another order."""

    def set_learning_rate(
        self, optimizer: Any, *, factor: float | None = None, rate: float | None = None
    ) -> None:
        """Scale every group's rate, or set them all."""

    def unfreeze(self, model: Any, optimizer: Any, names: Sequence[str] | None = None) -> None:
        """Let the named parameters (all: None) be trained, at the optimizer's largest rate (None: there is none yet)."""

    def hold_parameters(self, optimizer: Any, model: Any) -> None:
        """Make the optimizer hold the model's trainable parameters and no others."""

    def set_padding(self, model: Any, token: int) -> None:
        """Tell the model which token is padding."""

    def decoder_inputs(self, model: Any, labels: Any) -> Any:
        """What an encoder-decoder model's decoder reads while it is trained on these labels."""

    def freeze(self, model: Any, names: Sequence[str]) -> None:
        """Keep the named parameters from being trained."""

    def clear_gradients(self, model: Any) -> None:
        """Drop the gradient of every parameter."""

    def clip_gradients(self, optimizer: Any, norm: float) -> None:
        """Scale the gradient down to a norm before each of the optimizer's steps."""

    def detached(self, value: Any) -> Any:
        """The value, or what is in it, without its graph."""

    def detach_kept(self, model: Any) -> None:
        """Take the tensors that the model keeps in its attributes off the graph of the step that made them."""

    def register_lists(self, model: Any, names: Sequence[str]) -> None:
        """Make the plain lists (or dictionaries) of layers at these paths part of the model."""

    def normalise_rows(self, tensor: Any) -> Any:
        """The tensor with mean 0 and deviation 1 over its last axis, with its gradient."""

    def widen_head(self, model: Any, classes: int) -> str:
        """Give the model's output layer `classes` outputs, its old ones kept; return the layer's name."""

    def resize_embeddings(self, model: Any, rows: int, name: str = "") -> None:
        """Give the named embedding `rows` rows; without a name the input embedding, and a token output of its size."""

    def set_dropout(self, model: Any, probability: float) -> None:
        """Set the probability of every dropout layer."""

    def mask_padding(self, model: Any, embedding: str) -> None:
        """Let an embedding tell the layers behind it to leave token 0 out."""

    def set_training(self, model: Any, training: bool) -> None:
        """Put the model and all its modules in training or evaluation mode."""

    def change_rows(self, data: Any, change: Callable[[dict[str, Any], int], Mapping[str, Any]]) -> Any:
        """The data set with each item changed as it is read; the change is given the item and its row."""

    def choose_rows(self, data: Any, rows: Sequence[int]) -> Any:
        """The data set of these rows only."""

    def choose_of_several(self, sets: Sequence[Any], rows: Sequence[tuple[int, int]]) -> Any:
        """A data set of rows of several, each row given as (which set, its row there)."""

    def predicted_classes(self, scores: Any, labels: Any) -> Any:
        """The classes that scores speak for, one for each label; None where their shapes do not fit."""

    def padded(self, rows: Sequence[Any]) -> list[Any]:
        """Tensors, arrays or lists that differ along one axis, with zeros up to the longest of them."""

    def standardise(self, tensor: Any) -> Any:
        """The tensor with each row brought to mean 0 and deviation 1, with its gradient."""

    def take_rows(self, batch: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """The first rows of every tensor of a batch that has as many as the first; with torch, of every such list too."""

    def zero_non_finite(self, model: Any) -> None:
        """Set NaN and infinity among the model's weights and buffers to zero."""

    def reinitialise(self, model: Any, names: Sequence[str]) -> None:
        """Draw these parameters anew, as the framework's own layers do."""

    def scale_parameters(self, model: Any, factors: Mapping[str, float]) -> None:
        """Multiply the named parameters."""

    def activate(self, model: Any, names: Sequence[str]) -> None:
        """Put these modules in training mode, where gradients are computed."""

    def resize_input(self, model: Any, layer: str, size: int) -> None:
        """Rebuild a layer for inputs of this size (an embedding: for indices below it)."""

    def flatten_before(self, model: Any, layer: str) -> None:
        """Flatten all axes but the first of what a layer is given."""

    def shuffled(self, dataset: Any) -> Any:
        """The same rows in a random order that stays the same; of an iterable set, its first rows."""

    def rename_outputs(self, model: Any, role: str, names: Mapping[str, str]) -> None:
        """Let one of the dictionaries that a model was compiled with have other keys.

        Args:
            role: loss, loss_weights or metrics; of the targets (`labels`), the outputs take their names.
            names: the key there is, and what it is to be.
        """

    def give_no_loss(self, model: Any, names: Sequence[str]) -> None:
        """Let the dictionary of a model's losses name these outputs too, with None."""
