"""A Keras model that is about to be fitted, on TensorFlow, torch or JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Run
from trainwright.adapters.keras import evaluation, setup, step
from trainwright.adapters.keras.callbacks import measure_callbacks
from trainwright.adapters.keras.calls import callbacks_of, catching
from trainwright.adapters.keras.constant import answers, constant_and_floor
from trainwright.adapters.keras.graph_step import failure_in_graph
from trainwright.adapters.keras.input.batch import measure_batch
from trainwright.adapters.keras.input.data_sets import measure_dataset, planned_updates
from trainwright.adapters.keras.optimizer import is_rate_given, optimizer_facts, trained_values
from trainwright.adapters.keras.saving import refused_files
from trainwright.adapters.keras.schedule import dry_run, rate_of_short_runs
from trainwright.adapters.keras.training import Fit, Twin
from trainwright.core.repair import Repair
from trainwright.seams.keras.loss import KeptLoss
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts, EpochFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts
from trainwright.tensors.keras.versions import walk_version_of


class KerasAdapter:
    """One `fit` that is about to train, measured on the model itself, which is put back after each look.

    Args:
        planned: the script trains by these arguments; False: they only say what to look at.
    """

    framework = "keras"

    def __init__(
        self, model: Any, given: Mapping[str, Any], frame: FrameType, seen: Seen, *, planned: bool = True
    ) -> None:
        walk_version_of(model)
        self._planned = planned
        self.fit = Fit(model=model, given=given, frame=frame)
        self._epochs: EpochFacts | None = None
        with quiet():
            self.twin = Twin(self.fit, seen)

    @property
    def planned_updates(self) -> int | None:
        """How many updates the real training would make; None: not known, or none is planned."""
        if not self._planned:
            return None
        return planned_updates(self.twin.data, self.twin.model.optimizer, self._epochs)

    def measure_setup(self) -> SetupFacts:
        twin, data = self.twin, self.twin.data
        with quiet():
            twin.try_to_build()
            later = setup.later_freezes(twin.model, self.fit.frame)
            freezes = setup.ineffective_freezes(twin.model, twin.seen, later, twin.real_step)
            twin.reset()
            facts = setup.setup_facts(
                twin.model, self.fit.given, self.fit.frame, twin.seen, twin.backend,
                batch_size=data.batch_size, planned_updates=self.planned_updates, epochs=data.plan.epochs,
                optimizers=twin.optimizers(),
            )  # fmt: skip
            files = refused_files(twin.model, self.fit.frame)
            return replace(facts, ineffective_freezes=freezes, refused_files=files)

    def measure_dataset(self) -> DatasetFacts:
        twin, data = self.twin, self.twin.data
        labels = setup.find_places(twin.model, self.fit.frame, twin.seen).get("labels_made")
        with quiet():
            facts = measure_dataset(data, scope=twin.scope, label_place=labels, outcome=twin.outcome)
        self._epochs = facts.epochs
        return facts

    def measure_batch(self) -> BatchFacts:
        twin = self.twin
        with quiet():
            return measure_batch(twin.data, twin.model, batches=twin.changed_pool())

    def measure_step(self) -> step.StepFacts:
        return step.measure_step(self.twin)

    def measure_optimizer(self) -> OptimizerFacts:
        twin, model = self.twin, self.twin.model
        twin.rate_of_short_runs = None  # the first update is measured at the rate that it has
        batch = twin.take(1, seed=0)[0]
        twin.reset()
        attribute = next(iter(twin.optimizers()), "optimizer")
        optimizer = getattr(model, attribute)
        given = is_rate_given(optimizer, twin.seen) if optimizer is not None else True
        built = optimizer in twin.seen.optimizers if optimizer is not None else False
        planned, first = self.planned_updates, int(self.fit.given.get("initial_epoch") or 0)
        epochs = range(first, int(self.fit.given.get("epochs") or 1))
        with twin.ready(0):
            schedule = dry_run(optimizer, callbacks_of(self.fit.given), planned, epochs)
            observer = twin.observer(detail=False)
            with catching(observer.record):
                twin.build_optimizer()
            before = trained_values(model)
            record = observer.record if observer.record.failure else twin.take_step(batch, 0)
            facts = optimizer_facts(
                getattr(model, attribute), model, before, record.failure, rate_given=given or schedule.by_callback, planned=planned,
                schedule=schedule,
                held=twin.held_at_start if attribute == "optimizer" else None,
                given_gradients=bool(record.gradients) if twin.own_step else None, user_built=built,
                library=setup.library_name(twin.scope),
            )  # fmt: skip
            inner = getattr(optimizer, "inner_optimizer", optimizer)
            position = twin.seen.position_given(inner, "learning_rate") if built else None
            facts = replace(
                facts, rate_position=position, epochs=epochs, failure=facts.failure or failure_in_graph(twin)
            )
        twin.reset()
        twin.rate_of_short_runs = rate_of_short_runs(schedule)
        return facts

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        twin = self.twin
        twin.reset()
        with twin.ready(0):
            facts = evaluation.measure(twin, batches)
            facts = replace(facts, **measure_callbacks(twin))
        twin.reset()
        return facts

    def train(self, *, steps: int, batches: int, seed: int, changes: Sequence[Repair] = (),
              seconds: float = 30.0, enough: float = 0.0) -> Run:  # fmt: skip
        before = self.twin.steps.compiling_seconds
        run = short_runs.train(
            self.twin, self._at_end, steps=steps, batches=batches, seed=seed, changes=changes, seconds=seconds,
            enough=enough,
        )  # fmt: skip
        compiling = self.twin.steps.compiling_seconds - before  # once, whatever the number of steps and runs
        return replace(run, seconds=max(run.seconds - compiling, 1e-3))

    def _at_end(self, batches: Sequence[Any]) -> dict[str, Any]:
        """Losses and predictions of the batches in evaluation mode, and what a constant prediction loses there."""
        losses: list[float] = []
        kept: list[list[KeptLoss]] = []
        for batch in batches:
            record, loss = self.twin.look_at(batch)
            if record.failure is not None or loss is None:
                return {}
            losses.append(loss)
            kept.append(list(record.kept_losses))
        constant, floor = constant_and_floor(kept, losses)
        told = [answers(calls[0]) if len(calls) == 1 else ([], []) for calls in kept]
        complete = all(p for p, _ in told)
        return {
            "evaluated": sum(losses) / len(losses),
            "constant": constant,
            "floor": floor,
            "predictions": tuple(c for p, _ in told for c in p) if complete else (),
            "labels": tuple(c for _, t in told for c in t) if complete else (),
        }

    def apply(self, repair: Repair) -> None:
        with quiet():
            self.twin.apply(repair)

    def put_back(self) -> None:
        with quiet():
            self.twin.put_back()

    def for_training(self) -> dict[str, Any]:
        """fit's arguments that must be given anew, because looking has drawn from them."""
        return self.twin.data.for_training()
