"""A Keras model that was given to `fit`, as a training that takes steps and can be restored."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, SimpleNamespace
from typing import Any

from trainwright.adapters.base import ActiveRepairs, EvaluatedBatch
from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.keras.backend import Backend, CompiledSteps, backend_of, number, scaling_of
from trainwright.adapters.keras.calls import as_tensors, catching, failing_as, is_own
from trainwright.adapters.keras.custom_step import OwnStep, optimizers_of
from trainwright.adapters.keras.held_variables import fit_optimizer, held_by, renew_optimizer
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.optimizer import accumulated_batches, compile_places
from trainwright.adapters.keras.state import AllState, KerasState, seed_everything
from trainwright.core import Call, Place, Repair, Seam, Stage
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.keras.loss import judge_call
from trainwright.seams.keras.observer import Observer
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.listening.seen import BuiltObjects, Construction, quiet
from trainwright.seams.state.snapshot import loose_generators
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import version


class FitTraining:
    """The model itself, its optimizer and its data, restored after every run.

    A copy is impossible: a subclassed model cannot be rebuilt from outside.

    Args:
        given: the arguments of `fit`, by name.
        frame: where it is called.
    """

    def __init__(
        self, model: Any, given: Mapping[str, Any], frame: FrameType, data: FitData, seen: BuiltObjects
    ) -> None:
        self.model, self.given, self.frame, self.seen = model, given, frame, seen
        self.scope: dict[str, Any] = {**frame.f_globals, **frame.f_locals}
        self.active = ActiveRepairs()
        self.backend: Backend = backend_of()
        self.data = data
        self._given = self._all_state()
        self.held_at_start = held_by(self.model.optimizer)
        self.logged_names: tuple[str, ...] = ()
        """The names that training logged at the end of an epoch, with those that the user's callbacks added."""
        self._start: KerasState | None = None
        self.rate_of_short_runs: Any = None
        """Replaces the optimizer's rate: a number or a schedule; None: no replacement."""
        self.steps = CompiledSteps(self.model, self.backend)
        self.unlisted: list[Any] = []
        """Weights that a step uses but the model does not track."""
        self.compiles = not model.run_eagerly
        self._applied: set[str] | None = None

    @property
    def compiled(self) -> Construction | None:
        """The `compile` call in force."""
        return self.seen.compiled.get(self.model)

    def optimizers(self) -> dict[str, Any]:
        """The training's optimizers by attribute of the model: compile's, or those that its own step applies."""
        found = optimizers_of(self.model)
        if not self.own_step or len(found) < 2:
            return {n: one for n, one in found.items() if one is self.model.optimizer}
        if self._applied is None:
            self._applied = set()
            self.reset()
            with self.ready(0), tolerated():  # data that cannot be read are reported by another stage
                batch = self.take(1, seed=0)[0]
                self._applied = self.step_gradients(batch, self.observer(detail=False)).applied
            self.reset()
        return {n: one for n, one in found.items() if n in self._applied} or found

    @property
    def own_step(self) -> bool:
        """Whether the user's class defines its own training step."""
        return is_own(self.model, "train_step")

    def take(self, count: int, *, seed: int) -> list[FitBatch]:
        """Some of the first batches."""
        return self.data.batches(count, seed)

    def step_on(self, data: FitData) -> RowStep | None:
        """A step on the first rows of a set; None if the model's own step decides how a batch is used."""
        first = next(iter(data.elements()), None)
        if first is None or self.own_step:  # its output does not show how its own step uses a batch
            return None
        self.reset()
        with self.ready(0):
            record, loss = self.look_at(first)
        self.reset()
        return RowStep(failure=str(record.failure) if record.failure is not None else "", loss=loss)

    def rows_of(self, batch: FitBatch) -> int:
        return batch.rows

    def reset(self) -> None:
        """Restore the weights from which training starts."""
        if self._start is not None:
            self._start.put_back()

    def keep_start(self) -> None:
        """Let training start from the parts as they are now."""
        if self._start is not None:
            fit_optimizer(self.model)
            self._start = KerasState([self.model])
        self._given = self._all_state()

    def _all_state(self) -> AllState:
        owners = [getattr(one.source, "given", None) for one in self.data.sets()]
        return AllState([self.model], loose_generators([*self.scope.values(), *owners]))

    def build(self, batch: FitBatch) -> None:
        """Let the model create its weights, as its first step would; from then on, `reset` restores them.

        Raises:
            Exception: whatever the model raised.
        """
        if self._start is not None:
            return
        model, before = self.model, KerasState([self.model])
        try:
            if self.own_step:
                self._build_by_step(batch)
            elif not all(layer.built for layer in model._flatten_layers()):
                self._call(batch)
        except Exception:
            before.put_back()  # a Sequential model would keep the shape for which building failed
            raise
        with tolerated():  # an optimizer that cannot be built is reported by the optimizer stage
            fit_optimizer(self.model)
        self._start = KerasState([model])

    def _build_by_step(self, batch: FitBatch) -> None:
        """Build the parts of a model that defines its own step, which need not have an output of its own."""
        if all(layer.built for layer in self.model._flatten_layers()):
            return
        with tolerated():
            self._call(batch)
            return
        with tolerated():  # its first step is measured later
            OwnStep(self.model).run(self.tensors_of(batch), StepRecord(), update=True)

    def try_to_build(self) -> None:
        """Let the model create its weights; a failure is reported by the forward stage."""
        with tolerated():
            for batch in self.take(1, seed=0):  # none if the data are empty
                self.build(batch)

    @contextlib.contextmanager
    def ready(self, seed: int) -> Iterator[None]:
        """Seed random numbers, and apply repairs under trial; `reset` undoes these."""
        with quiet():
            self.try_to_build()
            seed_everything(self.model, seed)
            for repair in self.active.tried:
                if repair.seam == Seam.TRAINER:
                    self.change_parts(repair)
            yield

    def change_parts(self, repair: Repair) -> Call:
        """The parts of the training as a repair leaves them; the model and its optimizer are changed in place."""
        given = {
            "model": self.model,
            "optimizer": self.model.optimizer,
            "train_dataset": self.data,
            "eval_dataset": self.data.validation,
            "collator": same_items,
            "metrics": None,
            "arguments": SimpleNamespace(dataloader_drop_last=False),
        }
        return apply_repair(repair, Call(seam=repair.seam, given=given, tensors=tensors, scope=self.scope))

    def build_optimizer(self) -> None:
        """Prepare the optimizer for the model's variables, with the repairs under trial."""
        if self.model.optimizer is None:
            return
        fit_optimizer(self.model)
        if self.rate_of_short_runs is not None:
            inner = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
            version().set_rate(inner, self.rate_of_short_runs)
        for repair in self.active.tried:
            if repair.seam == Seam.OPTIMIZER:
                self.change_parts(repair)
                fit_optimizer(self.model)

    # One step

    def observer(self, *, detail: bool, training: bool = True) -> Observer:
        """An observer of a step or an evaluation, with the repairs in force."""
        repairs = [r for r in self.active.all if training or r.seam != Seam.FORWARD]
        return Observer(
            self.model,
            repairs,
            detail=detail,
            places=self.seen.modules.get,
            asked_at=self.seen.asked_at,
            run_loss=self.run_loss if detail else None,
            loss_at=self.loss_place,
        )

    def run_loss(self, call: Callable[..., Any], *args: Any) -> Any:
        """Call a loss as training does: through the compiler if the model was compiled to use it."""
        compiles = self.backend.name == "tensorflow" and bool(self.model.jit_compile)
        return self.backend.compiled(call)(*args) if compiles else call(*args)

    def compute(self, data: Any, observer: Observer, *, training: bool = True) -> Any:
        """The loss of a batch as a tensor: the model's output and its losses, as its own step computes them."""
        x, y, weight = data
        if version().has_library_step(self.model):
            with failing_as(observer.record, Stage.LOSS):
                return version().library_loss(self.model, (x, y, weight), training)
        mode = {"training": training} if version().takes_training(self.model) else {}
        y_pred = self.backend.answer(self.model, x, mode)
        observer.record.output = y_pred
        with failing_as(observer.record, Stage.LOSS):
            return version().compute_loss(self.model, x, y, y_pred, weight, training)

    def step_gradients(self, batch: FitBatch, observer: Observer) -> StepRecord:
        """Take one step without its update; returns its record with gradients and any exception."""
        record = observer.record
        with observer, catching(record):
            data, variables = self.tensors_of(batch), [*self.model.trainable_variables, *self.unlisted]
            if self.own_step:
                OwnStep(self.model).run(data, record, update=False)
            else:
                loss, record.gradients = self.backend.gradients(
                    lambda d: self.compute(d, observer), data, variables, version().others(self.model)
                )
                record.loss, record.trained = number(loss), variables
        return record

    def take_step(self, batch: FitBatch, number_of_step: int, further: Iterator[FitBatch] | None = None) -> StepRecord:
        """Take one step with its update; the record includes any exception, and the loss of the last batch.

        An optimizer that accumulates updates with the last of its batches.
        A loss scale that starts too large skips updates until it was halved often enough: the step is taken again.
        """
        for accumulated in itertools.islice(further or itertools.repeat(batch), self.window - 1):
            record = self._take_step(accumulated)
            if record.failure is not None:
                return record
        before = self._loss_scale()
        record = self._take_step(batch)
        while before is not None and (now := self._loss_scale()) is not None and 1 <= now < before:
            before, record = now, self._take_step(batch)
        return record

    @property
    def window(self) -> int:
        """How many batches the optimizer accumulates for an update."""
        return accumulated_batches(self.model.optimizer)

    def _loss_scale(self) -> float | None:
        scale = getattr(self.model.optimizer, "dynamic_scale", None)
        return None if scale is None else float(tensors.value_of(scale))

    def _take_step(self, batch: FitBatch) -> StepRecord:
        observer = self.observer(detail=False)
        if self.own_step:
            with observer, catching(observer.record):
                OwnStep(self.model).run(self.tensors_of(batch), observer.record, update=True)
            return observer.record
        if self.model.optimizer is not None and self.compiles:
            with tolerated():  # a compiled step's error says less than that of the step by itself
                return self._compiled_step(batch)
            self.compiles = False
        record = self.step_gradients(batch, observer)
        if record.failure is None and record.gradients is not None and self.model.optimizer is not None:
            with catching(record):
                self.update(record.gradients, record.trained)
        return record

    def _compiled_step(self, batch: FitBatch) -> StepRecord:
        observer = self.observer(detail=False)
        with observer:
            loss = self.steps.take(
                lambda d: self.compute(d, observer),
                self.tensors_of(batch),
                version().others(self.model),
                self.active.all,
            )
        return StepRecord(loss=number(loss))

    def real_step(self) -> None:
        """One step with the function that fit uses; if fit has yet to build it, the optimizer is new as well."""
        batch = self.take(1, seed=0)[0]
        if self.model.train_function is None and self.model.optimizer is not None:
            renew_optimizer(self.model)
        self.model.train_on_batch(batch.x, batch.y, sample_weight=batch.sample_weight)

    def update(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Update the weights once, with gradients of the unscaled loss."""
        optimizer = self.model.optimizer
        scale = scaling_of(optimizer)
        scaled = [None if g is None else scale(g) for g in gradients]
        self.backend.apply(optimizer, scaled, variables)

    def loss_of(self, batch: FitBatch) -> float:
        """The loss of a batch from one step at the initial weights, always with the same random numbers.

        Raises:
            Exception: whatever the step raised.
        """
        self.reset()
        seed_everything(self.model, 0)
        record = self.step_gradients(batch, self.observer(detail=False))
        if record.error is not None:
            raise record.error
        return math.nan if record.loss is None else record.loss

    def evaluate(self, batch: FitBatch) -> EvaluatedBatch | None:
        record, loss = self.look_at(batch)
        if record.failure is not None or loss is None:
            return None
        return EvaluatedBatch(loss=loss, losses=[judge_call(kept) for kept in record.kept_losses])

    def look_at(self, batch: FitBatch, *, training: bool = False) -> tuple[StepRecord, Any]:
        """The record and loss of the batch without updates, in evaluation mode unless told otherwise."""
        observer = self.observer(detail=False, training=training)
        with observer, catching(observer.record):
            observer.record.loss = number(self.compute(self.tensors_of(batch), observer, training=training))
        return observer.record, observer.record.loss

    def answer(self, batch: FitBatch, *, training: bool = False) -> Any:
        """The model's output for a batch, in evaluation or training mode."""
        with self.observer(detail=False, training=training):
            return self._call(batch, training=training)

    def _call(self, batch: FitBatch, *, training: bool = False) -> Any:
        x, _, _ = self.tensors_of(batch)
        x = version().inputs_to_answer(self.model, x)
        return self.model(x, training=training) if version().takes_training(self.model) else self.model(x)

    def tensors_of(self, batch: FitBatch) -> tuple[Any, Any, Any]:
        """Inputs, targets and weights as the model receives them."""
        return (as_tensors(batch.x), as_tensors(batch.y), as_tensors(batch.sample_weight))

    def put_back(self) -> None:
        """Undo everything since this object was created."""
        self.reset()
        self._given.put_back()

    def loss_place(self, loss: Any) -> Place | None:
        """The user's line that names a loss of the model."""
        built = self.seen.losses.get(loss) if loss is not None else None
        return built.place if built is not None else compile_places(self.compiled).get("loss")


def same_items(items: Any) -> Any:
    """A collator that returns the batch unchanged."""
    return items
