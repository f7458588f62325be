"""A training loop of the user's own, as steps that can be taken: its body, its batches, and all that a step changes.

The body is run as it stands. Where it would change weights or rates, gates decide; what it draws at random is drawn
again when the same batch is wanted; what it prints or writes goes nowhere.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from trainwright.adapters.accelerated import scaled_steps, scalers_of, wrapped_objects
from trainwright.adapters.base import Change
from trainwright.adapters.batches import POOLED, RecordingCollator
from trainwright.adapters.body import Body
from trainwright.adapters.constant import TargetsSeen
from trainwright.adapters.loop_items import (
    NamedRows,
    UnnamedRows,
    around,
    evaluation_loaders,
    names_of_items,
    put_dataset,
)
from trainwright.adapters.loop_parts import (
    Parts,
    find_parts,
    follow_parameters,
    label_name,
    names_of_inputs,
    unwrapped,
)
from trainwright.adapters.torch_gradients import Gradient, Window, clear, gradients_now
from trainwright.adapters.torch_optimizer import peak_rates, set_rates
from trainwright.adapters.torch_probes import rows_of, take_rows
from trainwright.adapters.torch_run import Look
from trainwright.adapters.torch_schedule import DryRun, planned_schedule
from trainwright.core.finding import Failure
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.intercept import Seen, quiet, watching_loaders
from trainwright.seams.mute import muted
from trainwright.seams.place import failure_of
from trainwright.seams.reach import ScriptState
from trainwright.seams.snapshot import AttributeState, RandomState, loose_generators, seed_everything
from trainwright.seams.torch import ModelState, Observer, OptimizerState, StepRecord
from trainwright.seams.torch_gates import Gates, Passed
from trainwright.seams.torch_graph import GraphWatch
from trainwright.tensors import torch as tensors

# A window of accumulation longer than this is taken for a loop that never steps.
LONGEST_WINDOW = 64
# Over so many steps a short run's rate rises where training warms up, as for a Trainer.
WARMED_UP = 6
# Objects of frameworks whose attributes a step changes.
_FRAMEWORK_STATE = (
    "torch.amp",
    "torch.cuda.amp",
    "accelerate.",
    "torchmetrics",
    "lightning.",
    "pytorch_lightning.",
)


@dataclass(frozen=True)
class Turn:
    """One time round the loop: the number of its batch, and which of the batch's rows are wanted."""

    number: int
    rows: tuple[int, ...] | None = None
    item: Any = field(default=None, compare=False)
    """What the loop is to hand out instead of the batch of this number."""


class LoopTraining:
    """The steps of one loop. Nothing that it does outlives `put_back`, but for what the user's code writes by itself."""

    def __init__(self, body: Body, seen: Seen) -> None:
        self.body = body
        self.scope: dict[str, Any] = dict(body.scope)
        self.change = Change()
        self.seen = seen
        self.loaders: list[Any] = []
        self.warmup_updates = 0
        self.optimizers = [o for o in seen.optimizers if hasattr(o, "param_groups")]
        self.schedules = list(seen.schedules)
        self._random = RandomState(loose_generators(self.scope.values()))
        values = [v for v in self.scope.values() if not isinstance(v, type)]
        modules = [v for v in values if isinstance(v, nn.Module)]
        self._script = self._script_given = ScriptState(
            [*modules, *values], leave=[*self.optimizers, *self.schedules]
        )
        self.modules = _outermost([unwrapped(m) for m in (*modules, *self._script.models, *body.modules)])
        inner = [m for top in self.modules for m in top.modules()]
        self._attributes = AttributeState([*inner, *_framework_state(values)])
        self._values = [ModelState(m) for m in self.modules]
        self._loose = [(t, t.detach().clone()) for t in _leaves(values)]
        self._optimizer_states = [OptimizerState(o) for o in self.optimizers]
        self._schedule_states = [(s, dict(s.__dict__)) for s in self.schedules]
        self._scalers = [(v, v.state_dict()) for v in scalers_of(values)]
        self._given = (self._attributes, self._values, self._optimizer_states)
        self._loader_states: list[AttributeState] = []
        self._items: list[Any] | None = None
        self._views: dict[int, dict[str, Any]] = {}
        self._parts: Parts | None = None
        self._label_key: str | None = None
        self._item_names: dict[str, str] | None = None
        self._collating: list[Repair] = []
        self.arguments = SimpleNamespace(dataloader_drop_last=False, per_device_train_batch_size=0,
                                         per_device_eval_batch_size=0)  # fmt: skip
        """What a Trainer would take as arguments, as far as repairs change it."""
        self._seed = 0
        self._count = 0
        self._dry: DryRun | None = None
        self._peaks: list[list[float]] = []

    # The batches

    def form_pool(self) -> tuple[Failure | None, RecordingCollator | None]:
        """Draw the first batches; what the user's loader raised, and the collator that saw the rows."""
        self.reset()
        self._items, self._views = None, {}
        collators: list[tuple[Any, Any, RecordingCollator]] = []
        workers: list[tuple[Any, int, Any]] = []

        def begun(loader: Any) -> None:
            if not any(known is loader for known in self.loaders):
                self.loaders.append(loader)
            recorder = RecordingCollator(self._mended(loader.collate_fn))
            collators.append((loader, loader.collate_fn, recorder))
            workers.append((loader, loader.num_workers, loader.multiprocessing_context))
            loader.collate_fn, loader.num_workers = recorder, 0

        seed_everything(1)
        drawn: list[Any] = []
        failure = None
        try:
            with quiet(), muted(), watching_loaders(begun):
                for item in self.body.items():
                    drawn.append(item)
                    if len(drawn) == POOLED:
                        break
        except Exception as error:  # the user's data or collator raised: that is what we came to see
            failure = failure_of(error)
        finally:
            for loader, collator, _ in collators:
                loader.collate_fn = collator
            for loader, count, _ in workers:
                loader.num_workers = count
            self.body.start_over()
        self._items = drawn
        return failure, collators[-1][2] if collators else None

    def _mended(self, collator: Any) -> Any:
        """A loader's collate function with the repairs of such in force."""
        for repair in self._collating:
            given = {
                "model": None,
                "train_dataset": None,
                "collator": collator,
                "tokenizer": self.tokenizer(),
            }
            collator = repair.change(self.call(Seam.TRAINER, given))["collator"]
        return collator

    @property
    def items(self) -> list[Any]:
        """What the loop goes over, its first items."""
        if self._items is None:
            self.form_pool()
        return self._items or []

    def take(self, count: int, *, seed: int) -> list[Turn]:
        """Some of the first batches; one is among those with most classes, several are in the loader's order."""
        numbers = list(range(len(self.items)))
        if count == 1:
            richest = sorted(numbers, key=lambda n: -self._classes(n))
            return [Turn(richest[seed % len(richest)])]
        start = seed % len(numbers)
        return [Turn(n) for n in (numbers[start:] + numbers[:start])[:count]]

    def _classes(self, number: int) -> int:
        labels = self.label_of(Turn(number)) if number in self._views or len(self.items) > 1 else None
        if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or labels.dim() != 1:
            return 0
        return int(torch.unique(labels).numel())

    def view(self, turn: Turn) -> dict[str, Any]:
        """The batch as the model and the loss are given it, by the names of forward's parameters; and its labels."""
        if turn.number not in self._views:
            with self.ready(0):
                self._see(turn)
            self.reset()
        whole = self._views[turn.number]
        return dict(whole) if turn.rows is None else take_rows(whole, turn.rows)

    def _see(self, turn: Turn) -> None:
        seen: dict[str, Any] = {}
        with names_of_inputs(self.parts, seen), self._observer([]).catching() as record:
            self._run(Turn(turn.number), 0, live=False)
        name = label_name(seen, record.targets)
        if name is None and record.targets is not None:
            name, seen["labels"] = "labels", record.targets
        self._label_key = name
        self._views[turn.number] = {
            k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in seen.items()
        }

    def label_key(self, view: Mapping[str, Any]) -> str | None:
        """The name of the labels in a view."""
        return self._label_key if self._label_key in view else None

    def label_of(self, turn: Turn) -> Any:
        """The labels of a batch, or None."""
        view = self.view(turn)
        return view.get(self.label_key(view) or "")

    def rows_of(self, turn: Turn) -> int:
        """How many rows a batch holds."""
        return rows_of(self.view(turn))

    def outcome_of_rows(self, rows: Sequence[int]) -> str | None:
        """What becomes of a step on these rows of the loader's set: an exception, a loss that is not finite, or "".

        None where the loop does not go over a loader's batches.
        """
        loader = self.loaders[0] if self.loaders else None
        if loader is None or self.body.draws or not hasattr(loader.dataset, "__getitem__"):
            return None
        try:
            batch = loader.collate_fn([loader.dataset[row] for row in rows])
        except Exception as error:  # the user's data or collator raised: that is what we came to see
            return str(failure_of(error))
        self.reset()
        with self.ready(0):
            record, _ = self.observe(Turn(0, item=self.body.with_batch(self.items[0], batch)))
        self.reset()
        if record.failure is not None:
            return str(record.failure)
        return "" if record.loss is None or math.isfinite(record.loss) else f"the loss is {record.loss}"

    def chosen_rows(self, turn: Turn, rows: Sequence[int]) -> Turn:
        """The same batch with some of its rows only."""
        return replace(turn, rows=tuple(rows))

    # The parts of the training

    @property
    def parts(self) -> Parts:
        """What takes part in a step."""
        if self._parts is None:
            self.reset()
            with quiet():
                seed_everything(1)
                self._parts = find_parts(self, self._run_bare)
            self.reset()
            if self._parts.failure is not None and self.change.all:  # it goes on with the repairs in force
                seed_everything(1)
                self._parts = find_parts(self, self._run_mended)
                self.reset()
        return self._parts

    def _run_bare(self, turn: Turn, number: int, passed: Passed) -> None:
        self._run(turn, number, live=False, passed=passed)

    def _run_mended(self, turn: Turn, number: int, passed: Passed) -> None:
        record, _ = self.observe(turn, number, passed=passed)
        if record.error is not None:
            raise record.error

    @property
    def model(self) -> nn.Module:
        """What is trained, under one roof."""
        return self.parts.model

    @property
    def wrapped(self) -> nn.Module:
        """The model as training calls it."""
        return self.parts.model

    @property
    def window(self) -> int:
        """How many times round the loop make one update."""
        return self.parts.window

    @property
    def repairs(self) -> list[Repair]:
        """Those in force."""
        return self.change.all

    @property
    def dry(self) -> DryRun:
        """The schedule over the planned updates."""
        if self._dry is None:
            planned, pace = self.body.updates_planned(self), self.body.schedule_pace(self)
            self._dry = planned_schedule(self.parts.schedules, planned, pace)
        return self._dry

    # Steps

    def reset(self) -> None:
        """Back to the weights (of the repaired model) and variables from which training would start."""
        self._script.put_back()
        self._attributes.put_back()
        for state in self._values:
            state.put_back()
        self._put_back_rest()
        self.body.start_over()
        self._count = 0

    @torch.no_grad()
    def _put_back_rest(self) -> None:
        for tensor, value in self._loose:
            tensor.copy_(value)
            tensor.grad = None
        for optimizer in self._optimizer_states:
            optimizer.put_back()
        for schedule, attributes in self._schedule_states:
            schedule.__dict__.clear()
            schedule.__dict__.update(attributes)
        for scaler, state in self._scalers:
            scaler.load_state_dict(state)

    @contextlib.contextmanager
    def ready(self, seed: int) -> Iterator[None]:
        """Seeded, and unseen by whoever listens to the script."""
        self._seed = seed
        with quiet():
            seed_everything(seed + 1)
            yield

    def build_optimizer(self) -> None:
        """Give the script's optimizers the peak rates of their schedules, and the repairs in force."""
        dry = self.dry
        highest = max((factor for _, factor in dry.points), default=1.0)
        self.warmup_updates = max(dry.points, key=lambda point: point[1], default=(0, 1.0))[0]
        for optimizer in self.parts.optimizers:
            set_rates(optimizer, [rate * highest for rate in peak_rates(optimizer)])
            for repair in self.change.all:
                if repair.seam == Seam.OPTIMIZER:
                    repair.change(self.call(Seam.OPTIMIZER, {"optimizer": optimizer, "model": self.model}))

    def observe(self, turn: Turn, number: int = 0, *, live: bool = False, detail: bool = False,
                watch: GraphWatch | None = None, rate_share: float = 1.0,
                passed: Passed | None = None) -> tuple[StepRecord, Passed]:  # fmt: skip
        """Once round the loop, watched; without an update unless it is live.

        The gradients that the optimizer was to step with are those of the parameters afterwards.
        """
        repairs = self._translated(turn)
        cuts = any(r.seam == Seam.CUT for r in repairs)
        watch = watch or (GraphWatch(self.model, repairs) if cuts else None)
        observer = self._observer(repairs, detail=detail)
        passed = Passed() if passed is None else passed
        with observer.catching() as record, watch or contextlib.nullcontext():
            self._run(turn, number, live=live, rate_share=rate_share, passed=passed)
        if record.minimised:
            record.loss = record.minimised[0] if passed.steps > 1 else sum(record.minimised)
        elif record.loss_tensor is not None:
            record.loss = float(record.loss_tensor.detach())
        if not live:
            for parameter in self.model.parameters():
                if id(parameter) in passed.gradients:
                    parameter.grad = passed.gradients[id(parameter)]
        return record, passed

    def _observer(self, repairs: Sequence[Repair], *, detail: bool = False) -> Observer:
        parts = self.parts
        return Observer(parts.model, repairs, roots=parts.roots, detail=detail, trained_only=parts.graded,
                        places=self.seen.modules.get)  # fmt: skip

    def _run(self, turn: Turn, number: int, *, live: bool, rate_share: float = 1.0,
             passed: Passed | None = None) -> None:  # fmt: skip
        """Run the body. Its batch is drawn with the turn's random numbers, the model's noise with the step's."""
        roots = self._parts.roots if self._parts is not None else ()
        parameters = list(self._parts.model.parameters()) if self._parts is not None else ()
        gates = Gates(self.optimizers, self.schedules, live=live, rate_share=rate_share, parameters=parameters,
                      passed=passed)  # fmt: skip
        noise = self._seed * 7919 + number
        drawn = turn.item if turn.item is not None else self.items[turn.number]
        item = self.body.item(drawn, self._count)
        self._count += 1
        seed_everything(1000 + turn.number)
        wrapped = scaled_steps(self.optimizers, self.scope.values())
        with gates.closed(), wrapped, muted(), _eager(), self._pinned(turn), _seeded_at_call(roots, noise):
            self.body.run(item)

    @contextlib.contextmanager
    def _pinned(self, turn: Turn) -> Iterator[None]:
        """A loader that the body itself draws from gives the turn's batch again."""

        def handed(iterator: Any, draw: Any) -> Any:
            key = (turn.number, id(iterator))
            if key not in self.body.drawn:
                self.body.drawn[key] = draw()
            return self.body.drawn[key]

        with watching_loaders(
            lambda loader: None, handed if self.body.draws else lambda iterator, draw: draw()
        ):
            yield

    def take_step(self, turn: Turn, number: int) -> StepRecord:
        """One update, with all the times round the loop that it takes; its loss is the first one's."""
        rise = min(self.warmup_updates, WARMED_UP)
        share = min(1.0, (number + 1) / (rise + 1))
        record, _ = self.observe(turn, number, live=True, rate_share=share)
        for _ in range(self.window - 1):
            if record.failure is None:
                further, _ = self.observe(turn, number, live=True, rate_share=share)
                record.failure = further.failure
        return record

    def look(self, turn: Turn) -> Look | None:
        """The batch in evaluation mode, nothing updated; None where the loop puts the model in training mode itself."""
        for module in self.model.modules():
            module.training = False
        with TargetsSeen() as seen:
            record, _ = self.observe(turn)
        if record.failure is not None or record.training or record.loss is None:
            return None
        return Look(loss=record.loss, targets=seen.calls, scores=record.scores, labels=self.label_of(turn))

    def loss_of(self, turn: Turn) -> float:
        """The loss of a batch as it stands, always with the same random numbers."""
        record, _ = self.observe(turn)
        if record.loss is None:
            raise RuntimeError("the step gave no loss")
        return record.loss

    def second_step(self, turn: Turn) -> Failure | None:
        """What a step raises after another one."""
        self.observe(turn)
        return self.observe(turn)[0].failure

    def gradients_of(self, turn: Turn) -> None:
        """The gradients of a batch, with the repairs in force."""
        self.observe(turn)

    def step_as_training(self, turn: Turn, *, seed: int, cleared: bool) -> Gradient:
        """The gradient with which the optimizer would step after this batch; what the body raises passes."""
        if cleared:
            clear(self.model)
        self._seed = seed
        for _ in range(self.window):
            record, _ = self.observe(turn, 0)
            if record.error is not None:
                raise record.error
        gradient = self._held(gradients_now(self.model))
        self._after_step()
        held = {id(p) for o in self.parts.optimizers for g in o.param_groups for p in g["params"]}
        names = {n for n, p in self.model.named_parameters() if id(p) in held}
        return {n: g for n, g in gradient.items() if n in names}

    def _held(self, gradient: Gradient) -> Gradient:
        """What of a gradient the optimizers step with; nobody clears or uses the rest."""
        held = {id(p) for o in self.parts.optimizers for g in o.param_groups for p in g["params"]}
        names = {n for n, p in self.model.named_parameters() if id(p) in held}
        return {n: g for n, g in gradient.items() if n in names} if names else gradient

    def _after_step(self) -> None:
        """Clear the gradients where the body does so after its step: they were put back for a look."""
        order = [c for c in self.parts.passed.calls if c in ("step", "zero_grad")]
        if order[-1:] == ["zero_grad"]:
            clear(self.model)

    def accumulate(self, turns: Sequence[Turn]) -> Window | None:
        """What the loop's own accumulation over these micro-batches does."""
        alone: list[Gradient] = []
        together = None
        for number, turn in enumerate(turns):
            self.reset()
            clear(self.model)
            record, _ = self.observe(turn, number, detail=True)
            divisor = _share_of_loss(record)
            if record.error is not None or not divisor:
                return None
            alone.append({n: g / divisor for n, g in gradients_now(self.model).items()})
        self.reset()
        clear(self.model)
        for number in range(self.window):
            record, passed = self.observe(turns[number % len(turns)], number % len(turns))
            if record.error is not None:
                return None
            if passed.steps:
                together = gradients_now(self.model)
        self.reset()
        if together is None:
            return None
        return Window({n: g * len(turns) / self.window for n, g in together.items()}, alone)

    def call(self, seam: Seam, given: Mapping[str, Any]) -> Call:
        """A call at a seam, as repairs take it."""
        return Call(seam=seam, given=given, tensors=tensors, scope=self.scope)

    def _translated(self, turn: Turn) -> list[Repair]:
        """The repairs in force; those of batches are made where the model and the loss are given them."""
        repairs = self.change.all
        of_batches = [r for r in repairs if r.seam == Seam.BATCH]
        if not of_batches and turn.rows is None:
            return repairs
        before = self.view(replace(turn, rows=None))
        after = dict(take_rows(before, turn.rows) if turn.rows is not None else before)
        for repair in of_batches:
            after = dict(repair.change(self.call(Seam.BATCH, after)).given)
        pairs = [(before[k], after[k]) for k in before if k in after and before[k] is not after[k]]

        def inputs(call: Call) -> Call:
            given = call["inputs"]
            if isinstance(given, Mapping):
                return call.replace(inputs={k: _exchanged(v, pairs) for k, v in given.items()})
            return call.replace(inputs=tuple(_exchanged(v, pairs) for v in given))

        def targets(call: Call) -> Call:
            return call.replace(targets=_exchanged(call["targets"], pairs))

        own = [
            Repair("give the model the batch", Seam.FORWARD, inputs),
            Repair("give the loss the batch", Seam.LOSS, targets),
        ]
        return [*own, *(r for r in repairs if r.seam != Seam.BATCH)]

    # Repairs, and the end

    def apply(self, repair: Repair) -> None:
        """Keep a repair in force.

        Raises:
            Exception: whatever its change raised.
        """
        self.reset()
        if repair.seam == Seam.TRAINER:
            self._apply_to_training(repair)
        self.change.kept.append(repair)
        if repair.seam in (Seam.TRAINER, Seam.BATCH):
            self._items, self._views = None, {}
        self._parts = None

    def _apply_to_training(self, repair: Repair) -> None:
        loader = self.loaders[0] if self.loaders else None
        model = self._parts.model if self._parts is not None else None
        names = dict(model.named_parameters()) if model is not None else {}
        formed = bool(self._items)
        data = NamedRows(loader.dataset, self.item_names) if loader is not None else None
        other = next((v for _, v in evaluation_loaders(self.scope, self.loaders)), None)
        held = NamedRows(other.dataset, self.item_names) if other is not None else None
        given = {
            "model": model,
            "train_dataset": data,
            "eval_dataset": held,
            "collator": dict if formed else getattr(loader, "collate_fn", None),
            "tokenizer": self.tokenizer(),
            "metrics": None,
            "label_names": [],
            "arguments": self.arguments,
            "ignored_arguments": {},
        }
        with quiet():
            changed = repair.change(self.call(Seam.TRAINER, given))
        self._loader_states.append(AttributeState(around(loader)))
        if changed["collator"] is not given["collator"] and formed:
            collate = changed["collator"]
            kept = Repair(
                repair.does, Seam.BATCH, lambda call: Call(seam=Seam.BATCH, given=collate(dict(call.given)))
            )
            self.change.kept.append(kept)
        elif changed["collator"] is not given["collator"]:
            self._collating.append(repair)
        if changed["train_dataset"] is not data and loader is not None:
            put_dataset(loader, UnnamedRows(changed["train_dataset"], loader.dataset, self.item_names))
        if changed["eval_dataset"] is not held and other is not None:
            put_dataset(other, UnnamedRows(changed["eval_dataset"], other.dataset, self.item_names))
        if model is not None:
            follow_parameters(self.optimizers, names, model)
        inner = [m for top in self.modules for m in top.modules()]
        values = [v for v in self.scope.values() if not isinstance(v, type)]
        self._script = ScriptState([*self.modules, *values], leave=[*self.optimizers, *self.schedules])
        self._attributes = AttributeState([*inner, *_framework_state(values)])
        self._values = [ModelState(m) for m in self.modules]
        self._optimizer_states = [OptimizerState(o) for o in self.optimizers]

    @property
    def item_names(self) -> dict[str, str]:
        """The name that each position of the loop's items has in its batches' views, where values tell."""
        if self._item_names is None and self._items and not self.body.draws:
            self._item_names = names_of_items(self.body.batch_of(self._items[0]), self.view(Turn(0)))
        return self._item_names or {}

    def tokenizer(self) -> Any:
        """A tokenizer in the script's scope."""
        for value in self.scope.values():
            if hasattr(value, "pad_token_id") and hasattr(value, "decode") and callable(value):
                return value
        return None

    def put_back(self) -> None:
        """Undo everything."""
        self._script.put_back()
        self._script_given.put_back()
        attributes, values, self._optimizer_states = self._given
        for attributes_then in (*reversed(self._loader_states), attributes):
            attributes_then.put_back()
        for state in values:
            state.put_back()
        self._put_back_rest()
        self.body.start_over()
        self._random.put_back()


def _share_of_loss(record: StepRecord) -> float | None:
    """By what factor the loss function's value entered what was minimised: 1/k where it was divided by k."""
    shares = [s for s in record.loss_shares if s]
    if shares:
        return shares[-1]
    value = record.kept_losses[-1].value if record.kept_losses else None
    whole = float(value.detach()) if isinstance(value, torch.Tensor) and value.numel() == 1 else 0.0
    return record.minimised[0] / whole if whole and record.minimised else None


def _exchanged(value: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    if isinstance(value, torch.Tensor):
        for before, after in pairs:
            if (
                isinstance(before, torch.Tensor)
                and before.shape == value.shape
                and torch.equal(before, value.detach())
            ):
                return after
    return value


@contextlib.contextmanager
def _seeded_at_call(roots: Sequence[nn.Module], seed: int) -> Iterator[None]:
    """Seed the random numbers when the first of these modules is called."""
    hooks: list[Any] = []

    def first(module: nn.Module, args: Any) -> None:
        if not torch.is_grad_enabled():
            return  # an evaluation in the midst of the step
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
def _eager() -> Iterator[None]:
    """Compiled functions run as they are written."""
    set_stance = getattr(torch.compiler, "set_stance", None)
    with set_stance("force_eager") if set_stance is not None else contextlib.nullcontext():
        yield


def _outermost(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """Of some modules those that are in none of the others, each once."""
    unique = list({id(m): m for m in modules}.values())
    inner = {id(c) for m in unique for c in m.modules() if c is not m}
    return [m for m in unique if id(m) not in inner]


def _leaves(values: Sequence[Any]) -> list[torch.Tensor]:
    """Tensors that are trained without being part of a module."""
    found = [v for v in values if isinstance(v, torch.Tensor)]
    found += [
        t for v in values if isinstance(v, (list, tuple)) for t in v[:1000] if isinstance(t, torch.Tensor)
    ]
    found += [
        t
        for v in values
        if isinstance(v, dict)
        for t in list(v.values())[:1000]
        if isinstance(t, torch.Tensor)
    ]
    return [t for t in found if t.requires_grad and t.is_leaf and not isinstance(t, nn.Parameter)]


def _framework_state(values: Sequence[Any]) -> list[Any]:
    found = [
        v for v in values if type(v).__module__.startswith(_FRAMEWORK_STATE) and not isinstance(v, nn.Module)
    ]
    found = list({id(v): v for v in [*found, *wrapped_objects(values), *scalers_of(values)]}.values())
    inner = [getattr(v, "gradient_state", None) for v in found]
    return [*found, *(v for v in inner if v is not None)]
