"""A difference between the Trainers of transformers 4.41 to 5: the tokenizer's name."""

from __future__ import annotations

import inspect
from typing import Any

# Before transformers 4.46, the Trainer stored it as its tokenizer.
_TOKENIZER_NAMES = ("processing_class", "tokenizer")


def tokenizer_name(trainer: Any) -> str:
    """The attribute in which a Trainer stores its tokenizer."""
    names = inspect.signature(_transformers_own(trainer)).parameters
    return next(n for n in _TOKENIZER_NAMES if n in names)


def _transformers_own(trainer: Any) -> type:
    """transformers' own Trainer class among this one's base classes."""
    return next(k for k in type(trainer).__mro__ if k.__module__ == "transformers.trainer")
