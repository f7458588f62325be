"""One run of a loop's body: seeded, with the optimizers blocked or enabled, and its loaders pinned to a batch."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trainwright.adapters.loop.accelerate import scaled_steps
from trainwright.adapters.loop.turn import Turn
from trainwright.core.repair import Seam
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.hearing import step_heard
from trainwright.seams.listening.torch_patches import begun_iterators, loader_of, watching_backward, watching_loaders
from trainwright.seams.loops.lifting import LoopLeft
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.evaluation import EvaluationWatch
from trainwright.seams.torch.gates import Gates, Passed
from trainwright.seams.torch.step_record import StepRecord

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining

# A turn's batch is drawn with the seed FIRST_BATCH_SEED + its number. The model uses the run's seed times the stride,
# plus the step, so that runs with fewer steps than the stride share no seed.
FIRST_BATCH_SEED = 1000
SEED_STRIDE = 7919


def run_body(
    training: LoopTraining,
    turn: Turn,
    number: int,
    *,
    live: bool,
    rate_share: float = 1.0,
    passed: Passed | None = None,
    keep: bool = False,
) -> None:
    """Run the body once. Its batch is drawn with the turn's seed; the model's noise uses the step's seed.

    Args:
        number: the step within the run, which seeds the model's noise.
        live: let optimizers and schedules really step.
        rate_share: the fraction of the learning rates to step with.
        passed: records what reached the gates.
        keep: keep the gradients that the optimizers were to step with.
    """
    roots = training.known_parts.roots if training.known_parts is not None else ()
    parameters = list(training.known_parts.model.parameters()) if training.known_parts is not None else ()
    gates = Gates(
        training.optimizers,
        training.schedules,
        live=live,
        rate_share=rate_share,
        rate_factors=training.rate_factors,
        parameters=parameters,
        passed=passed,
        keep=not live and training.known_parts is not None and (keep or training.window > 1 or not training.optimizers),
    )
    noise = training.seed * SEED_STRIDE + number
    # A `while` loop iterates over nothing, so its item is the same in every round.
    drawn = turn.item if turn.item is not None else training.items[turn.number % len(training.items)]
    item = training.body.item(drawn, training.count)
    if training.count and training.body.clears_between_passes and _left(training, training.count - 1) == 1:
        for parameter in parameters:  # what code around the loop does before each pass
            parameter.grad = None
    training.count += 1
    seed_everything(FIRST_BATCH_SEED + turn.number)
    wrapped = scaled_steps(training.optimizers, training.scope.values())
    with (
        gates.closed(),
        wrapped,
        muted(),
        eager(),
        _pinned(training, turn),
        _seeded_at_call(roots, noise),
        _metrics_mended(training),
        step_heard(),
    ):
        training.body.run(item, turn.number)


def minimized_loss(record: StepRecord, passed: Passed, scaled: Sequence[tuple[Any, float]]) -> float | None:
    """The loss that a run of the body minimized, as it is without a gradient scaler's factor; None if it has none.

    Args:
        scaled: what scalers made of the losses, each with its factor.
    """
    loss = record.loss
    if record.minimised:
        loss = record.minimised[0] if passed.steps > 1 else sum(record.minimised)
    elif record.loss_tensor is not None:
        loss = float(record.loss_tensor.detach())
    factor = next((factor for product, factor in scaled if product is record.loss_tensor), 1.0)
    return loss / factor if loss is not None else None


def rounds_to_update(training: LoopTraining) -> int:
    """How many rounds the next update takes at most: at the end of a pass, what is left of it comes before the window."""
    left = _left(training, training.count)
    return training.rounds if left is None or left >= training.rounds else left + training.rounds


def _left(training: LoopTraining, count: int) -> int | None:
    return training.body.rounds_left(count)


def _metrics_mended(training: LoopTraining) -> contextlib.AbstractContextManager[Any]:
    """The metric repairs in force, if an evaluation inside the body made the body itself raise."""
    repairs = [r for r in training.active.all if r.seam == Seam.METRICS] if training.bare_failure else []
    return EvaluationWatch(repairs, math.inf, frozenset()).watching() if repairs else contextlib.nullcontext()


@contextlib.contextmanager
def _pinned(training: LoopTraining, turn: Turn) -> Iterator[None]:
    """Make iterators of loaders that existed before the body yield the turn's batches again.

    An iterator that the body itself creates (an evaluation, `next(iter(loader))`) draws as usual: its order follows
    from the turn's random numbers.
    """
    there = {id(iterator): iterator for iterator in begun_iterators()}  # kept alive, so no other object gets its id
    begun: list[Any] = []
    draws: Counter[int] = Counter()
    drawn = training.body.drawn

    def fresh(iterator: Any, draw: Any) -> Any:
        try:
            return draw()
        except StopIteration:  # the walk wants more batches than this pass over the data had left
            known = len(begun)
            further = _begun_again(training, iterator)
            del begun[known:]  # not used by the body
            return passed_on(next, further)

    def handed(iterator: Any, draw: Any) -> Any:
        loader = loader_of(iterator)
        _note_loader(training, loader)
        if id(iterator) not in there or any(loader is one for one in begun):
            return draw()
        if training.body.keeps_draw:
            return fresh(iterator, draw)
        key = ("loader", turn.number, id(iterator), draws[id(iterator)])
        draws[id(iterator)] += 1
        if key not in drawn:
            drawn[key] = iterator, fresh(iterator, draw)
        return drawn[key][1]

    def free(iterator: Any, draw: Any) -> Any:
        return draw()

    with watching_loaders(begun.append, handed if training.body.draws else free):
        yield


def _note_loader(training: LoopTraining, loader: Any) -> None:
    """Note a loader that the body draws training batches from."""
    known = loader is None or any(one is loader for one in training.loaders)
    if not known and torch.is_grad_enabled():
        training.loaders.append(loader)


def _begun_again(training: LoopTraining, iterator: Any) -> Iterator[Any]:
    """A new iterator of the loader that an exhausted one came from; the exhausted one if that is unknown."""
    key = ("again", id(iterator))
    if key not in training.body.drawn:
        loader = loader_of(iterator)
        training.body.drawn[key] = passed_on(iter, loader if loader is not None else ())
    further: Iterator[Any] = training.body.drawn[key]
    return further


@contextlib.contextmanager
def _seeded_at_call(roots: Sequence[nn.Module], seed: int) -> Iterator[None]:
    """Seed the random numbers when the first of these modules is called."""
    hooks: list[Any] = []

    def first(module: nn.Module, args: Any) -> None:
        if not torch.is_grad_enabled():
            return  # an evaluation in the middle of the step
        for hook in hooks:
            hook.remove()
        seed_everything(seed)

    hooks += [root.register_forward_pre_hook(first) for root in roots]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def left_at_backward() -> Iterator[None]:
    """Leave a body that runs meanwhile where it would call backward."""

    def leave() -> None:
        raise LoopLeft

    with contextlib.suppress(LoopLeft), watching_backward(leave):
        yield


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Run compiled functions eagerly."""
    set_stance = getattr(torch.compiler, "set_stance", None)
    with set_stance("force_eager") if set_stance is not None else contextlib.nullcontext():
        yield
