"""A copy of a Trainer that takes steps as the Trainer would, with repairs in force, and leaves no trace."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from trainwright.adapters import short_runs
from trainwright.adapters.base import ActiveRepairs
from trainwright.adapters.data.reading import length
from trainwright.adapters.torch.batches import Pool, RecordingCollator
from trainwright.adapters.torch.called_model import rows_of, take_rows
from trainwright.adapters.torch.constant import JudgedLosses
from trainwright.adapters.torch.cpu_replay import on_cpu
from trainwright.adapters.torch.gradients import clear
from trainwright.adapters.torch.optimizer import set_rates
from trainwright.adapters.torch.schedule import stand_in_schedule
from trainwright.adapters.torch.training import Gradient, Look, Window
from trainwright.adapters.trainer import versions
from trainwright.adapters.trainer.gradients import accumulate, accumulating, gradient_of
from trainwright.adapters.trainer.learning import noting_smoothed
from trainwright.adapters.trainer.repairs import apply_to_trainer, find_tokenizer
from trainwright.adapters.trainer.state import FurtherModels, script_state
from trainwright.adapters.trainer.trainer_copy import copy_of_trainer, enable_checkpointing
from trainwright.core import Call, Failure, Repair, Seam
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.seams.state.snapshot import AttributeState, RandomState, loose_generators, seed_everything
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.state import ModelState, OptimizerState
from trainwright.seams.torch.step_record import StepRecord
from trainwright.seams.torch.watch import Observer
from trainwright.tensors.torch import objects as tensors

_PREPARED = ("forward", "_original_forward")  # attributes that Accelerator.prepare_model sets on a model


class TrainerTraining:
    """A shallow copy of a `Trainer` (`self.trainer`), without callbacks or logging, and how it takes a step.

    The model and the accelerator are shared with the user's (`self.original`), and restored from snapshots.
    """

    began_clear: bool | None = None

    def __init__(self, original: Any, frame: FrameType, seen: Seen) -> None:
        self.original = original
        self.active = ActiveRepairs()
        named = {**frame.f_globals, **frame.f_locals}
        # A tracker's stand-in has every attribute that it is asked for.
        self.scope: dict[str, Any] = {k: v for k, v in named.items() if not isinstance(v, Nothing)}
        self.ignored_arguments: dict[str, Any] = {}
        self.device_lost = False
        self.warmup_updates = 0
        self.wrapped: Any = None
        """The model as training calls it."""
        self._seen = seen
        self.tokenizer_name = versions.tokenizer_name(original)
        self._random = RandomState(loose_generators(self.scope.values()))
        model = original.model
        self._modules = AttributeState(model.modules())
        self._objects = AttributeState(
            [
                original,
                original.args,
                original.accelerator,
                original.accelerator.gradient_state,
                original.state,
                original.train_dataset,
                original.eval_dataset,
                original.data_collator,
                getattr(model, "config", None),
                original.optimizer,
            ]
        )
        self._given = ModelState(model)
        optimizer, schedule = original.optimizer, original.lr_scheduler
        self.given_optimizer = OptimizerState(optimizer) if optimizer is not None else None
        self._schedule = copy.copy(schedule.__dict__) if schedule is not None else None
        self._own_forward = {n: model.__dict__[n] for n in _PREPARED if n in model.__dict__}
        self._script = script_state(original)
        self._further = FurtherModels(self._script.models, original)
        self.trainer = copy_of_trainer(self)
        self.start = self._given
        self.versions_at_start = {id(p): p._version for p in model.parameters()}
        self.start_modules = AttributeState(model.modules())
        self._pool: Pool | None = None

    def apply(self, repair: Repair) -> None:
        if repair.seam == Seam.TRAINER:
            apply_to_trainer(self, repair)
        self.active.kept.append(repair)
        if repair.seam in (Seam.TRAINER, Seam.BATCH):
            self._pool = None

    def put_back(self) -> None:
        # Structure first: values belong to the original parameters, not to those of a widened head.
        self._modules.put_back()
        self._objects.put_back()
        with contextlib.suppress(*[RuntimeError] if self.device_lost else []):  # a lost device cannot be written to
            self._given.put_back()
        if self.given_optimizer is not None:
            self.given_optimizer.put_back()
        if self._schedule is not None:
            self.original.lr_scheduler.__dict__.clear()
            self.original.lr_scheduler.__dict__.update(self._schedule)
        self._script.put_back()
        self._further.put_back()
        self._random.put_back()

    @property
    def pool(self) -> Pool:
        """The first training batches, formed once."""
        if self._pool is None:
            loader = self.loader(evaluation=False)
            self._pool = Pool(loader, label_key=self.label_key)
        return self._pool

    def form_pool(self) -> tuple[Failure | None, RecordingCollator]:
        """Form the first batches; one of them may fail although the very first did not."""
        recorder = RecordingCollator(self.trainer.data_collator)
        try:
            with quiet():
                self._pool = Pool(self.loader(evaluation=False, recorder=recorder), label_key=self.label_key)
        except Exception as error:  # the user's data or collator raised, which is a finding
            return failure_of(error), recorder
        return None, recorder

    def reset(self) -> None:
        """Restore the weights (of the repaired model) from which training starts."""
        self.start_modules.put_back()
        self.start.put_back()
        if self.given_optimizer is not None:
            self.given_optimizer.put_back()
        else:
            self.trainer.optimizer = None
        model = self.trainer.model
        for name in _PREPARED:
            model.__dict__.pop(name, None)
        model.__dict__.update(self._own_forward)

    def planned_updates(self) -> int | None:
        """How many updates the real training would make."""
        args, rows = self.original.args, length(self.original.train_dataset)
        if args.max_steps > 0:
            return int(args.max_steps)
        if rows is None:
            return None
        batches = rows / (args.train_batch_size * args.world_size)
        batches = math.floor(batches) if args.dataloader_drop_last else math.ceil(batches)
        updates = max(1, math.ceil(batches / args.gradient_accumulation_steps))
        total: int = math.ceil(args.num_train_epochs * updates)
        return total

    @contextlib.contextmanager
    def ready(self, seed: int) -> Iterator[None]:
        """Prepare the model as training does (devices, mixed precision, checkpointing), with seeded random numbers."""
        trainer = self.trainer
        with quiet():
            trainer.model_wrapped = trainer.model
            lost = self.device_lost  # the accelerator would move the model to it
            self.wrapped = trainer.model if lost else trainer.accelerator.prepare_model(trainer.model)
            trainer.accelerator.gradient_state._set_sync_gradients(True)
            trainer.current_gradient_accumulation_steps = 1
            trainer.is_in_train = True
            enable_checkpointing(self)
            seed_everything(seed + 1)
            yield

    def compute(
        self,
        batch: Mapping[str, Any],
        record: StepRecord,
        watch: GraphWatch | None = None,
        further: Iterator[Mapping[str, Any]] | None = None,
    ) -> None:
        """Forward, loss and backward on one batch and those accumulated with it, as the Trainer does them."""
        window = [batch, *itertools.islice(further or (), self.trainer.args.gradient_accumulation_steps - 1)]
        self.wrapped.zero_grad()
        cuts = any(r.seam == Seam.CUT for r in self.active.all)
        watched = watch or (GraphWatch(self.trainer.model, self.active.all) if cuts else contextlib.nullcontext())
        losses = []
        with watched, accumulating(self, len(window)) as begin:
            for number, one in enumerate(window):
                begin(number)
                losses.append(float(self.step_on(one, window).detach().float().mean()))
        record.loss = sum(losses)

    def step_on(self, batch: Mapping[str, Any], window: Sequence[Mapping[str, Any]]) -> torch.Tensor:
        """Forward, loss and backward on one batch of an accumulation window; returns the loss."""
        trainer = self.trainer
        given = self.mended_batch(batch)
        together = [self.mended_batch(b) for b in window]
        return versions.step(trainer, self.wrapped, type_like(batch, given), together)

    def loss_of(self, batch: Mapping[str, Any]) -> float:
        """The current loss of a batch without gradients, always with the same random numbers."""
        seed_everything(1)
        trainer, given = self.trainer, self.mended_batch(batch)
        with torch.no_grad(), Observer(self.wrapped, self.active.all):
            loss = trainer.compute_loss(self.wrapped, trainer._prepare_inputs(type_like(batch, given)))
        return float(loss.detach().float().mean())

    def gradients_of(self, batch: Mapping[str, Any]) -> None:
        """Compute the gradients of a batch, with the repairs in force; exceptions propagate."""
        with Observer(self.wrapped, self.active.all):
            self.compute(batch, StepRecord())

    @property
    def model(self) -> Any:
        """The trained model."""
        return self.trainer.model

    def step_as_training(self, batch: Mapping[str, Any], *, seed: int, cleared: bool) -> Gradient:
        """The gradient after one more step; exceptions propagate."""
        clear(self.model) if cleared else self.wrapped.zero_grad()
        with Observer(self.wrapped, self.active.all):
            return gradient_of(self, batch, [batch], seed)

    def trained_with(self) -> Any:
        """The Trainer's optimizer, built as training builds it."""
        self.build_optimizer()
        return self.trainer.optimizer

    def accumulate(self, batches: Sequence[Mapping[str, Any]]) -> Window:
        """What the Trainer's accumulation over these micro-batches does."""
        return accumulate(self, batches)

    def chosen_rows(self, batch: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
        """The same batch with only some of its rows."""
        return take_rows(batch, rows)

    def take(self, count: int, *, seed: int) -> list[Mapping[str, Any]]:
        """Some of the first batches."""
        return self.pool.take(count, seed=seed)

    def rows_of(self, batch: Mapping[str, Any]) -> int:
        """The number of rows in a batch."""
        return rows_of(batch)

    def take_step(
        self, batch: Mapping[str, Any], number: int, further: Iterator[Mapping[str, Any]] | None = None
    ) -> StepRecord:
        """Take one step with its update; the record includes any exception."""
        with Observer(self.wrapped, self.active.all).catching() as record:
            self.compute(batch, record, further=further)
            self.update(rate_share=short_runs.rate_share(number, self.warmup_updates))
        return record

    def look(self, batch: Mapping[str, Any], *, by_row: bool = False, training: bool = False) -> Look | None:
        """The batch in evaluation mode, without updates."""
        trainer, given = self.trainer, self.mended_batch(batch)
        trainer.model.train(training)
        observer, loss = Observer(self.wrapped, self.active.all), math.nan
        with (
            JudgedLosses(by_row) as seen,
            noting_smoothed(trainer, seen),
            observer.catching() as record,
            torch.no_grad(),
        ):
            loss = float(trainer.compute_loss(self.wrapped, trainer._prepare_inputs(type_like(batch, given))))
        if record.failure is not None:
            return None
        labels = given.get(self.label_key(given) or "")
        return Look(loss=loss, losses=seen.calls, scores=record.scores, labels=labels)

    def label_of(self, batch: Mapping[str, Any]) -> Any:
        """The labels of a batch, or None."""
        return batch.get(self.label_key(batch) or "")

    def label_key(self, batch: Mapping[str, Any]) -> str | None:
        return next((n for n in [*self.trainer.label_names, "labels", "label"] if n in batch), None)

    def mended_batch(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(batch)
        for repair in self.active.all:
            if repair.seam == Seam.BATCH:
                given = dict(mended(repair, self.call(Seam.BATCH, given)).given)
        return given

    @property
    def repairs(self) -> list[Repair]:
        """The repairs in force."""
        return self.active.all

    def update(self, rate_share: float = 1.0) -> None:
        trainer = self.trainer
        if trainer.args.max_grad_norm and trainer.args.max_grad_norm > 0:
            trainer.accelerator.clip_grad_norm_(self.wrapped.parameters(), trainer.args.max_grad_norm)
        rates = [g["lr"] for g in trainer.optimizer.param_groups]
        set_rates(trainer.optimizer, [rate * rate_share for rate in rates])
        trainer.optimizer.step()
        set_rates(trainer.optimizer, rates)

    def build_optimizer(self) -> None:
        trainer = self.trainer
        trainer.lr_scheduler = self.original.lr_scheduler
        if trainer.optimizer is None:
            trainer.create_optimizer()
        optimizer = trainer.optimizer
        for group in optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
        with tolerated():  # a failure shows in the dry run
            trainer.lr_scheduler = stand_in_schedule(trainer, self.planned_updates())
        for repair in self.active.all:
            if repair.seam == Seam.OPTIMIZER:
                mended(repair, self.call(Seam.OPTIMIZER, {"optimizer": optimizer, "model": trainer.model}))

    def first_batch(self, *, evaluation: bool) -> tuple[Mapping[str, Any] | None, Failure | None, RecordingCollator]:
        recorder = RecordingCollator(self.trainer.data_collator)
        seed_everything(1)
        try:
            with quiet():
                return next(iter(self.loader(evaluation=evaluation, recorder=recorder))), None, recorder
        except StopIteration:
            return (None, Failure(type="StopIteration", message="the loader gave no batch", where=None), recorder)
        except Exception as error:  # the user's data or collator raised, which is a finding
            return None, failure_of(error), recorder

    def loader(self, *, evaluation: bool, recorder: RecordingCollator | None = None) -> Any:
        trainer = self.trainer
        kept = trainer.data_collator
        placement = trainer.accelerator.device_placement
        trainer.accelerator.device_placement = False  # facts are measured before a batch goes to a device
        trainer.data_collator = recorder or kept
        try:
            return trainer.get_eval_dataloader(self.evaluation_set()) if evaluation else trainer.get_train_dataloader()
        finally:
            trainer.data_collator = kept
            trainer.accelerator.device_placement = placement

    def evaluation_set(self) -> Any:
        return evaluation_set_of(self.trainer)

    def tokenizer(self) -> Any:
        """The Trainer's tokenizer, its collator's, or one in the script's scope."""
        return find_tokenizer(self.trainer, self.scope)

    def continue_on_cpu(self) -> None:
        """Continue with a copy of the model on the CPU after the device failed with an error of its own."""
        trainer = self.trainer
        for name in _PREPARED:
            trainer.model.__dict__.pop(name, None)
        trainer.model.__dict__.update(self._own_forward)
        copied = on_cpu(trainer.model, self.start)
        for old, new in zip(trainer.model.modules(), copied.modules()):
            if old in self._seen.modules:
                self._seen.modules[new] = self._seen.modules[old]
        if trainer.model in self._seen.loadings:
            self._seen.loadings[copied] = self._seen.loadings[trainer.model]
        trainer.model, trainer.optimizer = copied, None
        trainer.args.__dict__["_setup_devices"] = torch.device("cpu")
        self.device_lost, self.start, self.given_optimizer = True, ModelState(copied), None

    def call(self, seam: Seam, given: Mapping[str, Any]) -> Call:
        return Call(seam=seam, given=given, tensors=tensors, scope=self.scope)


def type_like(batch: Any, given: dict[str, Any]) -> Any:
    """The changed values in a container of the batch's own type."""
    if type(batch) is dict:
        return given
    other = copy.copy(batch)
    for key, value in given.items():
        other[key] = value
    return other


def evaluation_set_of(trainer: Any) -> Any:
    """The set that a Trainer evaluates on; of several the first."""
    data = trainer.eval_dataset
    if not isinstance(data, dict):
        return data
    # A part of the training set is often also evaluated, for comparison.
    held = [part for name, part in data.items() if "train" not in str(name)]
    return next(iter(held or data.values()), None)
