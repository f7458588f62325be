"""A Trainer's real training, ended after a short time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from trainwright.adapters.torch.trained_earlier import note_trained
from trainwright.timing import now


class Ending(TrainerCallback):
    """Ends the training once its time is over, without the evaluation and the checkpoint that its end would bring."""

    def __init__(self, seconds: float) -> None:
        self.has_ended = False
        self._seconds = seconds
        self._until = math.inf

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        """Stop at a step; the time begins with the first one."""
        self._until = min(self._until, now() + self._seconds)
        return self._end(state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        """Take back what the end of an epoch asks for."""
        return self._end(state, control)

    def _end(self, state: Any, control: Any) -> Any:
        if now() >= self._until:
            self.has_ended = self.has_ended or state.global_step < state.max_steps
            control.should_training_stop = True
            control.should_evaluate = control.should_save = False
        return control


def train_shortly(trainer: Any, original: Callable[[], Any], seconds: float) -> tuple[Any, bool]:
    """What `train()` returns, and whether it was ended early."""
    ending = Ending(seconds)
    trainer.add_callback(ending)
    try:
        result = original()
        note_trained(trainer.optimizer)
        return result, ending.has_ended
    finally:
        trainer.remove_callback(ending)
