"""The gradients with which a Trainer updates, as it accumulates them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    with Observer(training.wrapped, training.active.all):
        alone = []
        try:
            for i, batch in enumerate(batches):
                clear(training.model)
                with accumulating(training, 1):
                    alone.append(gradient_of(training, batch, [batch], 20 + i))
            clear(training.model)
            with accumulating(training, len(batches)) as begin:
                for i, batch in enumerate(batches):
                    begin(i)
                    together = gradient_of(training, batch, batches, 20 + i)
        finally:
            clear(training.model)
    return Window(together, alone)


@contextmanager
def accumulating(training: TrainerTraining, count: int) -> Iterator[Callable[[int], None]]:
    """Accumulate so many micro-batches an update; yields what to call before each, with its number from 0."""
    trainer, args = training.trainer, training.trainer.args
    state, given = trainer.accelerator.gradient_state, args.gradient_accumulation_steps
    object.__setattr__(args, "gradient_accumulation_steps", count)
    trainer.current_gradient_accumulation_steps = count
    try:
        yield lambda number: state._set_sync_gradients(number == count - 1)
    finally:
        state._set_sync_gradients(True)
        trainer.current_gradient_accumulation_steps = 1
        object.__setattr__(args, "gradient_accumulation_steps", given)


def gradient_of(
    training: TrainerTraining, batch: Mapping[str, Any], window: Sequence[Mapping[str, Any]], seed: int
) -> Gradient:
    seed_everything(seed)
    with GraphWatch(training.model, training.active.all):
        training.step_on(batch, window)
    return gradients_now(training.model)
