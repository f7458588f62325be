"""Differences between the Trainers of transformers 4.41 to 5: a step's arguments, and the tokenizer's name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

# Before transformers 4.46, the Trainer stored it as its tokenizer.
_TOKENIZER_NAMES = ("processing_class", "tokenizer")


def tokenizer_name(trainer: Any) -> str:
    """The attribute in which a Trainer stores its tokenizer."""
    names = inspect.signature(_transformers_own(trainer)).parameters
    return next(n for n in _TOKENIZER_NAMES if n in names)


def step(trainer: Any, model: Any, batch: Any, window: Sequence[Mapping[str, Any]]) -> Any:
    """Forward, loss and backward on a batch, as this version's `train` does them; returns the loss.

    Args:
        window: the batches that are accumulated with it.
    """
    own = _transformers_own(trainer)
    if hasattr(own, "_get_num_items_in_batch"):  # transformers 4.57
        items = trainer._get_num_items_in_batch(window, trainer.args.device)
    elif hasattr(own, "get_batch_samples"):  # 4.46: it draws the window and counts its labels
        given = (iter(window), len(window), trainer.args.device)
        taken = len(inspect.signature(own.get_batch_samples).parameters) - 1
        items = trainer.get_batch_samples(*given[:taken])[1]
    else:
        return trainer.training_step(model, batch)
    return trainer.training_step(model, batch, items)


def _transformers_own(trainer: Any) -> type:
    """transformers' own Trainer class among this one's base classes."""
    return next(k for k in type(trainer).__mro__ if k.__module__ == "transformers.trainer")
