"""A handwritten training loop as steps that can be taken: its body, its batches, and all that a step changes.

The body is run unchanged. Gates decide whether it changes weights or rates. Its random draws repeat with the same batch;
what it prints or writes is discarded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from trainwright.adapters import short_runs
from trainwright.adapters.base import ActiveRepairs
from trainwright.adapters.loop import gradients
from trainwright.adapters.loop.accelerate import scaled_losses
from trainwright.adapters.loop.batches import form_pool
from trainwright.adapters.loop.body import Body
from trainwright.adapters.loop.body_run import left_at_backward, minimized_loss, rounds_to_update, run_body
from trainwright.adapters.loop.first_turns import find_first_parts
from trainwright.adapters.loop.named_rows import evaluation_loaders, names_of_items
from trainwright.adapters.loop.parts import Parts, label_name, names_of_inputs
from trainwright.adapters.loop.repairs import apply_to_training, translated
from trainwright.adapters.loop.state import LoopState
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.adapters.torch.called_model import rows_of, take_rows
from trainwright.adapters.torch.constant import JudgedLosses
from trainwright.adapters.torch.optimizer import peak_rates, set_rates
from trainwright.adapters.torch.schedule import DryRun, planned_schedule
from trainwright.adapters.torch.trained_earlier import known_loaders
from trainwright.adapters.torch.training import Gradient, Look, Window
from trainwright.core import Call, Failure, Repair, Seam
from trainwright.seams.failures.blame import of_pipeline
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.gates import Passed, mark_scaled
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.step_record import StepRecord
from trainwright.seams.torch.watch import Observer
from trainwright.tensors.torch import objects as tensors

# Two passes over one batch differ only by rounding; state that a model keeps from one changes the next far more.
CARRIED_SHARE = 1e-3


class LoopTraining:
    """The steps of one loop. `put_back` undoes all its effects, except what the user's code writes by itself."""

    def __init__(self, body: Body, seen: Seen) -> None:
        self.body = body
        self.scope: dict[str, Any] = dict(body.scope)
        self.active = ActiveRepairs()
        self.seen = seen
        self.loaders: list[Any] = []
        self.optimizers = [o for o in seen.optimizers if hasattr(o, "param_groups")]
        self.schedules = list(seen.schedules)
        self.state = LoopState(self.scope, self.optimizers, self.schedules, body.modules)
        self.drawn: list[Any] | None = None
        self.views: dict[int, dict[str, Any]] = {}
        self.known_parts: Parts | None = None
        self._label_key: str | None = None
        self.labels_of_loss = False
        self._item_names: dict[str, str] | None = None
        self.collating: list[Repair] = []
        self.silent: set[int] = set()
        """Turns that do not train."""
        sizes = {"per_device_train_batch_size": 0, "per_device_eval_batch_size": 0}
        self.arguments = SimpleNamespace(dataloader_drop_last=False, **sizes)
        """The equivalent of a Trainer's arguments, as far as repairs change them."""
        self.left: dict[int, torch.Tensor | None] = {}
        """The gradients that the body left behind without updating, by the parameter's id."""
        self.began_clear: bool | None = None
        """Whether the last step taken as in training began without gradients; None: it did not call backward."""
        self.seed = 0
        self.rate_factors: dict[int, list[float]] = {}
        self.count = self.first = self.warmup_updates = 0
        self._dry: DryRun | None = None
        self.bare_failure = False
        """Whether the unchanged body raises."""

    # The batches

    def form_pool(self) -> tuple[Failure | None, RecordingCollator | None]:
        """Draw the first batches; returns what the user's loader raised, and the collator that recorded the rows."""
        return form_pool(self)

    @property
    def items(self) -> list[Any]:
        """The first items that the loop iterates over."""
        if self.drawn is None:
            self.form_pool()
        return self.drawn or []

    def take(self, count: int, *, seed: int) -> list[Turn]:
        """Some of the first batches; one is among those with the most classes, several are in the loader's order."""
        if not self.silent:
            _ = self.parts  # this also finds which turns train
        every = list(range(len(self.items)))
        numbers = [n for n in every if n not in self.silent] or every
        if count == 1:
            richest = sorted(numbers, key=lambda n: -self._classes(n))
            return [Turn(richest[seed % len(richest)])]
        start = seed % len(numbers)
        return [Turn(n) for n in (numbers[start:] + numbers[:start])[:count]]

    def _classes(self, number: int) -> int:
        labels = self.label_of(Turn(number)) if number in self.views or len(self.items) > 1 else None
        if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or labels.dim() != 1:
            return 0
        return int(torch.unique(labels).numel())

    def view(self, turn: Turn) -> dict[str, Any]:
        """The batch as the model and the loss receive it, under the names of forward's parameters, with its labels."""
        if turn.number not in self.views:
            with self.ready(0):
                self._see(turn)
            self.reset()
        whole = self.views[turn.number]
        return dict(whole) if turn.rows is None else take_rows(whole, turn.rows)

    def _see(self, turn: Turn) -> None:
        seen: dict[str, Any] = {}
        observer = self._observer([])
        record = observer.record  # empty if the body is left before its model is known
        with left_at_backward(), names_of_inputs(self.parts, seen), observer.catching():
            run_body(self, Turn(turn.number, item=turn.item), 0, live=False)
        name = label_name(seen, record.targets)
        self.labels_of_loss = name is None and record.targets is not None
        if self.labels_of_loss:
            name, seen["labels"] = "labels", record.targets
        self._label_key = name or self._label_key  # a batch that raises has none
        self.views[turn.number] = {k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in seen.items()}

    def label_key(self, view: Mapping[str, Any]) -> str | None:
        """The name of the labels in a view."""
        return self._label_key if self._label_key in view else None

    def label_of(self, turn: Turn) -> Any:
        """The labels of a batch, or None."""
        view = self.view(turn)
        return view.get(self.label_key(view) or "")

    def rows_of(self, turn: Turn) -> int:
        """The number of rows in a batch."""
        return rows_of(self.view(turn))

    def chosen_rows(self, turn: Turn, rows: Sequence[int]) -> Turn:
        """The same batch with only some of its rows."""
        return replace(turn, rows=tuple(rows))

    # The parts of the training

    @property
    def modules(self) -> list[nn.Module]:
        """The script's outermost modules."""
        return self.state.modules

    @property
    def parts(self) -> Parts:
        """The parts of a step."""
        if self.known_parts is None:
            find_first_parts(self)
            assert self.known_parts is not None
        return self.known_parts

    @property
    def model(self) -> nn.Module:
        """Everything that is trained, in one module."""
        return self.parts.model

    @property
    def wrapped(self) -> nn.Module:
        """The model as training calls it."""
        return self.parts.model

    @property
    def window(self) -> int:
        """The number of rounds that call backward per update."""
        return self.parts.window

    @property
    def rounds(self) -> int:
        """The number of rounds from one update to the next."""
        return self.parts.rounds

    @property
    def repairs(self) -> list[Repair]:
        """The repairs in force."""
        return self.active.all

    @property
    def dry(self) -> DryRun:
        """The schedule over the planned updates."""
        if self._dry is None:
            planned, pace = self.body.updates_planned(self), self.body.schedule_pace(self)
            self._dry = planned_schedule(self.parts.schedules, planned, pace)
        return self._dry

    # Steps

    def reset(self) -> None:
        """Restore the weights (of the repaired model) and variables from which training starts."""
        self.state.put_back()
        self.body.start_over()
        self.count = self.first

    @contextlib.contextmanager
    def ready(self, seed: int) -> Iterator[None]:
        """Seed random numbers, and hide the run from the listeners to the script."""
        self.seed = seed
        with quiet():
            seed_everything(seed + 1)
            yield

    def build_optimizer(self) -> None:
        """Give the script's optimizers their schedules' peak rates and the repairs in force."""
        dry = self.dry
        highest = max((factor for _, factor in dry.points), default=1.0)
        self.warmup_updates = short_runs.warmup_updates(dry.points)
        for optimizer in self.parts.optimizers:
            set_rates(optimizer, [rate * highest for rate in peak_rates(optimizer)])
            before = [group["lr"] for group in optimizer.param_groups]
            for repair in self.active.all:
                if repair.seam == Seam.OPTIMIZER:
                    mended(repair, self.call(Seam.OPTIMIZER, {"optimizer": optimizer, "model": self.model}))
            self.rate_factors[id(optimizer)] = mark_scaled(optimizer, before)

    def observe(
        self,
        turn: Turn,
        number: int = 0,
        *,
        live: bool = False,
        detail: bool = False,
        watch: GraphWatch | None = None,
        rate_share: float = 1.0,
        passed: Passed | None = None,
        until_backward: bool = False,
    ) -> tuple[StepRecord, Passed]:
        """Run one round of the loop, observed; without an update unless `live`.

        Afterwards, the parameters have the gradients that the optimizer was to step with.

        Args:
            until_backward: leave the body where it would call backward, when its loss is known.
        """
        repairs = translated(self, turn)
        cuts = any(r.seam == Seam.CUT for r in repairs)
        watch = watch or (GraphWatch(self.model, repairs) if cuts else None)
        observer = self._observer(repairs, detail=detail)
        passed = Passed() if passed is None else passed
        left = left_at_backward() if until_backward else contextlib.nullcontext()
        if watch is not None:
            watch.updates = lambda: passed.steps
        scaling = scaled_losses(self.scope.values())
        with left, observer.catching() as record, watch or contextlib.nullcontext(), scaling as scaled:
            run_body(self, turn, number, live=live, rate_share=rate_share, passed=passed, keep=detail)
        record.loss = minimized_loss(record, passed, scaled)
        if not live:
            self.left = {id(p): p.grad for p in self.model.parameters()}
            for parameter in self.model.parameters():
                if id(parameter) in passed.gradients:
                    parameter.grad = passed.gradients[id(parameter)]
                elif id(parameter) in passed.reached:  # cleared by the body before it reached a step
                    parameter.grad = passed.reached[id(parameter)]
        return record, passed

    def evaluation_loaders(self) -> list[tuple[str, Any]]:
        """The script's evaluation loaders, under the names used in the report."""
        other = known_loaders(self.scope, self.seen) | getattr(self.body, "trained_later", frozenset())
        return evaluation_loaders(self.scope, self.loaders, other, getattr(self.body, "names_read", None))

    def as_left(self) -> None:
        """Restore the gradients that the body left behind; an observation shows those of its step."""
        for parameter in self.model.parameters():
            parameter.grad = self.left.get(id(parameter))

    def _observer(self, repairs: Sequence[Repair], *, detail: bool = False) -> Observer:
        parts = self.parts
        return Observer(
            parts.model,
            repairs,
            roots=parts.roots,
            detail=detail,
            trained_only=parts.graded,
            places=self.seen.modules.get,
            asked_at=self.seen.asked_at,
        )

    def take_step(self, turn: Turn, number: int, further: Iterator[Turn] | None = None) -> StepRecord:
        """Make one update, with all its rounds; the record's loss is that of the first round."""
        share, rounds = short_runs.rate_share(number, self.warmup_updates), rounds_to_update(self)
        record, passed = self.observe(turn, number, live=True, rate_share=share)
        for _ in range(rounds - 1):
            if passed.steps or record.failure is not None:
                break
            turn = next(further, turn) if further else turn
            after, passed = self.observe(turn, number, live=True, rate_share=share)
            record = after if record.loss is None else replace(record, failure=after.failure)
        return record

    def look(self, turn: Turn, *, by_row: bool = False, training: bool = False) -> Look | None:
        """The batch in evaluation mode, without updates; None if the loop puts the model in training mode itself."""
        for module in self.model.modules():
            module.training = training
        with JudgedLosses(by_row) as seen:
            record, _ = self.observe(turn, until_backward=True)
        if record.failure is not None or (record.training and not by_row) or record.loss is None:
            return None
        labels = None if by_row else self.label_of(turn)  # the first view of a batch restores the weights
        return Look(loss=record.loss, losses=seen.calls, scores=record.scores, labels=labels)

    def loss_of(self, turn: Turn) -> float:
        """The current loss of a batch, always with the same random numbers."""
        record, _ = self.observe(turn, until_backward=True)
        if record.loss is None:
            raise of_pipeline(RuntimeError("the step gave no loss"))
        return record.loss

    def carries(self) -> bool:
        """Whether a batch's loss changes after a step without an update, because the model keeps state from it.

        A queue of earlier keys, a memory, a state passed between chunks: such a batch cannot be memorized.
        """
        turn = self.take(1, seed=0)[0]
        self.reset()
        with self.ready(0):
            first, second = (self.observe(turn)[0].loss for _ in range(2))
        self.reset()
        if first is None or second is None:
            return False
        return abs(second - first) > CARRIED_SHARE * max(abs(first), abs(second))

    def gradients_of(self, turn: Turn) -> None:
        """Compute the gradients of a batch, with the repairs in force."""
        self.observe(turn)

    def step_as_training(self, turn: Turn, *, seed: int, cleared: bool) -> Gradient:
        """The gradient with which the optimizer would step after this batch; the body's exceptions propagate."""
        self.seed = seed
        return gradients.step_as_training(self, turn, cleared=cleared)

    def trained_with(self) -> Any | None:
        """The script's first optimizer."""
        return next(iter(self.parts.optimizers), None)

    def accumulate(self, turns: Sequence[Turn]) -> Window | None:
        """What the loop's own accumulation over these micro-batches does."""
        return gradients.accumulate(self, turns)

    def call(self, seam: Seam, given: Mapping[str, Any]) -> Call:
        """A call at a seam, in the form that repairs take."""
        return Call(seam=seam, given=given, tensors=tensors, scope=self.scope)

    # Repairs, and the end

    def apply(self, repair: Repair) -> None:
        """Put a repair in force.

        Raises:
            Exception: whatever its change raised.
        """
        self.reset()
        if repair.seam == Seam.TRAINER:
            apply_to_training(self, repair)
        self.active.kept.append(repair)
        if repair.seam in (Seam.TRAINER, Seam.STACK, Seam.BATCH):
            self.drawn, self.views = None, {}
        self.known_parts = None

    @property
    def item_names(self) -> dict[str, str]:
        """The name of each position of the loop's items in the batches' views, if the values match."""
        if self._item_names is None and self.drawn and not self.body.draws:
            self._item_names = names_of_items(self.body.batch_of(self.drawn[0]), self.view(Turn(0)))
        return self._item_names or {}

    def tokenizer(self) -> Any:
        """A tokenizer in the script's scope."""
        found = (v for v in self.scope.values() if hasattr(v, "pad_token_id") and hasattr(v, "decode") and callable(v))
        return next(found, None)

    def put_back(self) -> None:
        """Undo everything."""
        self.state.end()
        self.body.start_over()
        self.state.end_random()
