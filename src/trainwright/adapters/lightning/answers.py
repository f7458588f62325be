"""Return values of a LightningModule's methods: loaders, and the loss of training_step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from trainwright.seams.failures.blame import of_pipeline


def loaders_made(makers: list[Any], name: str) -> Any:
    """The loaders from the first object with a loader method that is not Lightning's default."""
    for maker in makers:
        method = getattr(maker, name, None)
        base = str(getattr(method, "__module__", "")).startswith(("lightning.", "pytorch_lightning."))
        if method is not None and (name in vars(maker) or not base):
            return method()
    return None


def first_loader(loaders: Any) -> Any:
    """The first of several loaders."""
    if isinstance(loaders, Mapping):
        loaders = list(loaders.values())
    if isinstance(loaders, (list, tuple)):
        return loaders[0] if loaders else None
    return loaders


def loss_of_answer(output: Any) -> torch.Tensor | None:
    """The loss in training_step's return value; None skips the batch.

    Raises:
        TypeError, KeyError: for a value that Lightning rejects.
    """
    if isinstance(output, Mapping):
        if "loss" not in output:
            raise of_pipeline(KeyError("when `training_step` returns a mapping, the 'loss' key needs to be present"))
        output = output["loss"]
    if output is not None and not isinstance(output, torch.Tensor):
        raise of_pipeline(
            TypeError(f"`training_step` must return a tensor, a mapping or None; got {type(output).__name__}.")
        )
    return output


def detached_answer(output: Any) -> Any:
    """The return value as hooks receive it: tensors without their graph."""
    if isinstance(output, torch.Tensor):
        return {"loss": output.detach()}
    if isinstance(output, Mapping):
        return {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in output.items()}
    return output
