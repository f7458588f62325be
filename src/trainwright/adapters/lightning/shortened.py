"""A Lightning Trainer's real `fit`, ended after a short time."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from trainwright.adapters.torch.trained_earlier import note_trained
from trainwright.timing import now


def fit_shortly(trainer: Any, original: Callable[[], Any], seconds: float) -> tuple[Any, bool]:
    """What `fit` returns, and whether it was ended early."""
    ending = _ending(type(trainer), seconds)
    trainer.callbacks.append(ending)
    try:
        result = original()
        for optimizer in trainer.optimizers:
            note_trained(optimizer)
        return result, ending.has_ended
    finally:
        trainer.callbacks.remove(ending)


def _ending(kind: type, seconds: float) -> Any:
    """A callback that ends the training once its time is over, whatever the fewest epochs and steps are."""
    package = next(k.__module__ for k in kind.__mro__ if k.__name__ == "Trainer").partition(".trainer")[0]

    class Ending(importlib.import_module(package).Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.has_ended = False
            self._until = math.inf

        def on_train_batch_end(self, trainer: Any, *more: Any, **further: Any) -> None:
            self._until = min(self._until, now() + seconds)
            if now() >= self._until:
                trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
                self.has_ended = trainer.should_stop = True

    return Ending()
