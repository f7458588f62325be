"""Makes a training's first steps again, behind the run: its tapes, from the weights that it began with.

Only a training of one optimizer whose updates each belong to one backward pass is replayed, and only if the replayed steps give
the losses of the real ones. The process is the run's own and does nothing afterwards, so that nothing is put back.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from time import thread_time
from typing import Any

import torch
from torch import nn

from trainwright.adapters import short_runs
from trainwright.adapters.base import ActiveRepairs, EvaluatedBatch
from trainwright.adapters.torch.called_model import label_name, rows_of
from trainwright.adapters.torch.optimizer import peak_rates
from trainwright.core import Call, Repair, Seam
from trainwright.look.called import has_mode_on_top, is_same, name_inputs
from trainwright.seams.failures.blame import failure_of, is_own
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import AttributeState, seed_everything
from trainwright.seams.torch.loss import judge_call
from trainwright.seams.torch.modes import Leaving
from trainwright.seams.torch.observer import Observer
from trainwright.seams.torch.step_record import StepRecord
from trainwright.seams.torch.tape import Tape
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.objects import held_by

# Steps that are kept, of a model with at most so many values.
MOST_TAPES, MOST_VALUES = 16, 50_000_000
# A second one shows whether the optimizer is the script's; rounding grows from step to step, so that later ones show less.
FEWEST_TAPES, COMPARED_TAPES = 2, 4
# A replayed step's loss is the real one's, up to rounding that an update may have made larger.
SAME_WITHIN = 1e-3
# A forward pass that takes longer is not repeated.
SLOW_SECONDS = 1.0
# The seams that a replayed step offers.
OFFERED = (Seam.OPTIMIZER, Seam.BATCH, Seam.FORWARD, Seam.ACTIVATION, Seam.PAIRING, Seam.LOSS)


class Replay:
    """The first steps of one training: kept as they are made, and made again behind the run."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        self.tape: Tape | None = None
        """Of the step under way."""
        self.backwards = 0
        """Backward passes since the last update."""
        self.active = ActiveRepairs()
        self.rate, self.warmup_updates, self.step_seconds = 0.0, 0, 0.0
        self._is_over = False
        self._start: list[tuple[Any, Any]] = []
        self._attributes: AttributeState | None = None
        self._optimizer: Any = None
        self._now: Any = None
        """The optimizer of the run under way."""
        self._observer: Observer | None = None

    # The real steps

    def begin(self) -> Tape:
        """The first step begins."""
        self.tape = Tape()
        return self.tape

    def begin_first(
        self, model: nn.Module, roots: Sequence[nn.Module], optimizers: Sequence[Any], start: list[tuple[Any, Any]]
    ) -> None:
        """The first update is about to be made.

        Args:
            start: weights and buffers, each with what it is before the update.
        """
        if len(optimizers) != 1:
            self.drop()
            return
        self._model, self._roots, self._optimizer = model, list(roots), optimizers[0]
        self._start = start
        self._modes = [(module, module.training) for module in model.modules()]
        self._trained = [(p, p.requires_grad) for p in model.parameters()]
        size = sum(p.numel() for p in model.parameters())
        groups = torch.distributed
        is_alone = not (groups.is_available() and groups.is_initialized())
        is_held = held_by(self._optimizer) <= {id(p) for p in model.parameters()}
        if is_held and is_alone and size <= MOST_VALUES:
            self.begin_step(self._optimizer)
        else:
            self.drop()

    def begin_call(self, module: nn.Module) -> None:
        """A module is called in a later update."""
        if self._is_over or self.tape is not None or not any(module is root for root in self._roots):
            return
        # What keeps repairs in force lies below, and is in force when the step is made again.
        if isinstance(torch.overrides._get_current_function_mode(), Leaving) or not has_mode_on_top():
            self.tape = Tape()
            self._observer = Observer(self._model, roots=self._roots, tape=self.tape)
            self._observer.__enter__()

    def begin_step(self, optimizer: Any) -> None:
        """An update is about to be made."""
        if self._optimizer is not None and not is_same(optimizer, self._optimizer):
            self.drop()
        if self._is_over:
            return
        tape, backwards = self.tape, self.backwards
        self.tape, self.backwards = None, 0
        if not self.leave() or tape is None or not tape.is_whole or tape.value is None or backwards != 1:
            self._is_over = True
            return
        tape.groups = [{**group, "params": list(group["params"])} for group in optimizer.param_groups]
        self.tapes.append(tape)
        self._is_over = len(self.tapes) == MOST_TAPES

    def drop(self) -> None:
        """This training is not replayed; nothing of it is held."""
        self.leave()
        self.tapes, self._is_over, self.tape = [], True, None
        self._start, self._model, self._roots, self._modes, self._trained = [], None, [], [], []

    def leave(self) -> bool:
        """Leave the step; False where another mode of the script lies over the observer."""
        observer, self._observer = self._observer, None
        if observer is None:
            return True
        if torch.overrides._get_current_function_mode() is not observer:
            observer.is_passive = True
            return False
        observer.__exit__(None, None, None)
        return True

    # The same steps again

    @property
    def can_reset(self) -> bool:
        """Whether the weights that the training began with are kept."""
        return bool(self._start)

    def is_faithful(self, rate: float, rates: Sequence[float]) -> bool:
        """Whether the steps can be made again: their losses are the real ones.

        Args:
            rate: the highest learning rate of the training.
            rates: those of its updates.
        """
        if len(self.tapes) < FEWEST_TAPES:
            return False
        self.rate = rate
        self.warmup_updates = next((i for i, one in enumerate(rates) if one >= rate * (1 - SAME_WITHIN)), len(rates))
        self._attributes = AttributeState(self._model.modules())
        own = {id(tensor) for tensor, _ in self._start}
        held = [*self._model.parameters(), *self._model.buffers()]
        self._start += [(tensor, tensor.detach().clone()) for tensor in held if id(tensor) not in own]
        self.reset()
        self._now = self._new_optimizer(self.tapes[0])
        with quiet():
            began = thread_time()
            if not self._is_real(self.tapes[0]) or thread_time() - began > SLOW_SECONDS:
                return False
            is_same = self._is_real(self.tapes[0])  # a model may keep state of its own
            self.reset()
            began = thread_time()
            compared = self.tapes[:COMPARED_TAPES]
            is_same = is_same and all(self._is_real(tape, update=True) for tape in compared)
        self.step_seconds = (thread_time() - began) / len(compared)
        return is_same

    def _is_real(self, tape: Tape, *, update: bool = False) -> bool:
        for group, as_made in zip(self._now.param_groups, tape.groups):
            group |= {name: value for name, value in as_made.items() if name != "params"}
        tape.random.put_back()
        try:
            loss = tape.make()
        except Exception as error:  # the script has changed its model since, as by another head
            if is_own(error):
                raise
            return False
        value, real = float(loss.detach()), tape.value
        assert real is not None
        if update:
            self._update(tape, loss)
        if not math.isfinite(real):
            return not math.isfinite(value)
        return abs(value - real) <= SAME_WITHIN * abs(real)

    def _update(self, tape: Tape, loss: torch.Tensor) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None
        loss.backward()
        for clip in tape.clips:
            clip()
        self._now.step()

    def _new_optimizer(self, tape: Tape) -> Any:
        """An optimizer like the script's, with the groups of a step and without any state."""
        script = getattr(self._optimizer, "optimizer", self._optimizer)
        made = object.__new__(type(script))
        own = {name: value for name, value in vars(script).items() if name not in ("step", "zero_grad")}
        hooks: dict[str, Any] = {name: OrderedDict() for name, value in own.items() if isinstance(value, OrderedDict)}
        made.__dict__.update(own | hooks, state=defaultdict(dict))
        made.param_groups = [{**group, "params": list(group["params"])} for group in tape.groups]
        return made

    # As `adapters/short_runs.py` takes steps

    def take(self, count: int, *, seed: int) -> list[Tape]:
        """Some of the kept batches; one is among those with the most classes. None: there are not so many."""
        if count == 1:
            richest = sorted(self.tapes, key=lambda tape: -tape.classes)
            return [richest[seed % len(richest)]]
        start = seed % len(self.tapes)
        return (self.tapes[start:] + self.tapes[:start])[:count]

    def rows_of(self, tape: Tape) -> int:
        """The number of rows in a batch."""
        return rows_of(self.view(tape))

    def view(self, tape: Tape) -> dict[str, Any]:
        """The batch as the model and the loss are given it."""
        first = next((call for call in tape.calls if isinstance(call.function, nn.Module)), None)
        view = name_inputs(first.function, first.args, first.kwargs) if first is not None else {}
        if tape.targets is not None and label_name(view, tape.targets) is None:
            view["labels"] = tape.targets
        return view

    def reset(self) -> None:
        """Give the model the weights that training began with, and its modes."""
        if self._attributes is not None:
            self._attributes.put_back()
        with torch.no_grad():
            for tensor, value in self._start:
                tensor.copy_(value)
        for module, mode in self._modes:
            module.training = mode
        for parameter, is_trained in self._trained:
            parameter.requires_grad_(is_trained)
            parameter.grad = None

    @contextlib.contextmanager
    def ready(self, seed: int) -> Iterator[None]:
        """Seed random numbers, and hide the steps from the listeners."""
        with quiet():
            seed_everything(seed + 1)
            yield

    def build_optimizer(self) -> None:
        """A new optimizer at the training's peak rates, with the repairs in force."""
        self._now = self._new_optimizer(self.tapes[0])
        peaks = peak_rates(self._now)
        factor = self.rate / max(peaks) if max(peaks) else 1.0
        for group, peak in zip(self._now.param_groups, peaks):
            group["lr"] = factor * peak
        given = Call(seam=Seam.OPTIMIZER, given={"optimizer": self._now, "model": self._model}, tensors=tensors)
        with torch.no_grad():
            for repair in self.active.all:
                if repair.seam == Seam.OPTIMIZER:
                    apply_repair(repair, given)

    def take_step(self, tape: Tape, number: int) -> StepRecord:
        """Make one update."""
        record, share = StepRecord(), short_runs.rate_share(number, self.warmup_updates)
        rates = [group["lr"] for group in self._now.param_groups]
        try:
            with self.observed(tape):
                loss = tape.make()
            for group, rate in zip(self._now.param_groups, rates):
                group["lr"] = rate * share
            self._update(tape, loss)
            record.loss = float(loss.detach())
        except Exception as error:  # the script's own code, with a change in force
            record.failure = failure_of(error)
        for group, rate in zip(self._now.param_groups, rates):
            group["lr"] = rate
        return record

    def evaluate(self, tape: Tape) -> EvaluatedBatch | None:
        """The batch in evaluation mode; None if that raised."""
        for module in self._model.modules():
            module.training = False
        try:
            with self.observed(tape, keeps_losses=True) as observer, torch.no_grad():
                loss = tape.make()
        except Exception:  # the script's own code, in a mode of ours
            return None
        calls = map(judge_call, observer.record.kept_losses)
        return EvaluatedBatch(loss=float(loss), losses=[call for call in calls if call is not None])

    def loss_of(self, tape: Tape) -> float:
        """The loss of a step, with the weights that training began with and the repairs in force."""
        self.reset()
        with self.ready(0), self.observed(tape):
            return float(tape.make().detach())

    def observed(self, tape: Tape, *, keeps_losses: bool = False) -> Observer:
        """Observes the tape's calls, with the repairs in force."""
        repairs: list[Repair] = [one for one in self.active.all if one.seam != Seam.BATCH]
        of_batch = [one for one in self.active.all if one.seam == Seam.BATCH]
        if of_batch:
            before = after = self.view(tape)
            for repair in of_batch:
                after = dict(apply_repair(repair, Call(seam=Seam.BATCH, given=after, tensors=tensors)).given)
            repairs = [*_exchange_batch(before, after), *repairs]
        return Observer(self._model, repairs, roots=self._roots, keeps_losses=keeps_losses)


def _exchange_batch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Repair]:
    """Give the model and the loss another batch in the place of one, wherever they are given its values."""
    pairs = [(before[k], after[k]) for k in before if k in after and before[k] is not after[k]]

    def inputs(call: Call) -> Call:
        given = call["inputs"]
        if isinstance(given, Mapping):
            return call.replace(inputs={k: _exchanged(v, pairs) for k, v in given.items()})
        return call.replace(inputs=tuple(_exchanged(v, pairs) for v in given))

    def targets(call: Call) -> Call:
        return call.replace(targets=_exchanged(call["targets"], pairs))

    return [
        Repair("give the model the batch", Seam.FORWARD, inputs),
        Repair("give the loss the batch", Seam.LOSS, targets),
    ]


def _exchanged(value: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    if isinstance(value, torch.Tensor):
        for before, after in pairs:
            if isinstance(before, torch.Tensor) and before.shape == value.shape and torch.equal(before, value.detach()):
                return after
    return value
