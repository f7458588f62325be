"""The gradients with which a Trainer updates, as it accumulates them itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainwright.adapters.torch.gradients import clear, gradients_now
from trainwright.adapters.torch.training import Gradient, Window
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.watch import Observer

if TYPE_CHECKING:
    from trainwright.adapters.trainer.training import TrainerTraining


def accumulate(training: TrainerTraining, batches: Sequence[Mapping[str, Any]]) -> Window:
    """What the Trainer's accumulation over these micro-batches does."""
    trainer, args, count = training.trainer, training.trainer.args, len(batches)
    given = args.gradient_accumulation_steps
    with Observer(training.wrapped, training.active.all):
        alone = []
        object.__setattr__(args, "gradient_accumulation_steps", 1)
        try:
            for i, batch in enumerate(batches):
                clear(training.model)
                alone.append(gradient_of(training, batch, [batch], 20 + i))
            clear(training.model)
            object.__setattr__(args, "gradient_accumulation_steps", count)
            trainer.current_gradient_accumulation_steps = count
            for i, batch in enumerate(batches):
                trainer.accelerator.gradient_state._set_sync_gradients(i == count - 1)
                together = gradient_of(training, batch, batches, 20 + i)
        finally:
            trainer.current_gradient_accumulation_steps = 1
            trainer.accelerator.gradient_state._set_sync_gradients(True)
            object.__setattr__(args, "gradient_accumulation_steps", given)
            clear(training.model)
    return Window(together, alone)


def gradient_of(
    training: TrainerTraining, batch: Mapping[str, Any], window: Sequence[Mapping[str, Any]], seed: int
) -> Gradient:
    seed_everything(seed)
    with GraphWatch(training.model, training.active.all):
        training.step_on(batch, window)
    return gradients_now(training.model)
