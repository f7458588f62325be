"""Measures a `fit` of a Keras model, on TensorFlow, torch or JAX."""

from __future__ import annotations

from dataclasses import replace

from trainwright.adapters import short_runs
from trainwright.adapters.base import ShortRun, Train
from trainwright.adapters.keras import evaluation, setup, step_facts
from trainwright.adapters.keras.calls import callbacks_of, catching
from trainwright.adapters.keras.input.batch import measure_batch
from trainwright.adapters.keras.input.data_sets import measure_dataset, planned_updates
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.later_predictions import reshuffled_predictions
from trainwright.adapters.keras.optimizer import is_rate_given, optimizer_facts, trained_values
from trainwright.adapters.keras.schedule import dry_run, rate_of_short_runs
from trainwright.adapters.keras.training import FitCall, FitTraining
from trainwright.seams.listening.seen import BuiltObjects, quiet
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    EpochFacts,
    EvaluationFacts,
    OptimizerFacts,
    SetupFacts,
)


class FitMeasures:
    """One `fit`, measured on the model itself, which is restored after each measurement.

    Args:
        planned: the script trains with these arguments; False: they only say what to measure.
    """

    def __init__(self, call: FitCall, data: FitData, seen: BuiltObjects, *, planned: bool = True) -> None:
        self._planned = planned
        self.fit_call = call
        self._epochs: EpochFacts | None = None
        with quiet():
            self.fit = FitTraining(call, data, seen)

    @property
    def planned_updates(self) -> int | None:
        """How many updates the real training would make; None: unknown, or none is planned."""
        if not self._planned:
            return None
        return planned_updates(self.fit.data, self.fit.model.optimizer, self._epochs)

    def measure_setup(self) -> SetupFacts:
        self.fit.try_to_build()
        return setup.setup_facts(self.fit, self.planned_updates)

    def measure_dataset(self) -> DatasetFacts:
        fit, data = self.fit, self.fit.data
        labels = setup.find_places(fit.model, self.fit_call.frame, fit.seen).get("labels_made")
        facts = measure_dataset(data, scope=fit.scope, label_place=labels, step_on=fit.step_on)
        self._epochs = facts.epochs
        return facts

    def measure_batch(self) -> BatchFacts:
        return measure_batch(self.fit.data, self.fit.model)

    def measure_step(self) -> step_facts.StepFacts:
        return step_facts.measure_step(self.fit)

    def measure_optimizer(self) -> OptimizerFacts:
        fit, model = self.fit, self.fit.model
        fit.rate_of_short_runs = None  # the first update is measured at the optimizer's own rate
        batch = fit.take(1, seed=0)[0]
        fit.reset()
        attribute = next(iter(fit.optimizers()), "optimizer")
        optimizer = getattr(model, attribute)
        given = is_rate_given(optimizer, fit.seen) if optimizer is not None else True
        built = optimizer in fit.seen.optimizers if optimizer is not None else False
        planned, first = self.planned_updates, int(self.fit_call.given.get("initial_epoch") or 0)
        epochs = range(first, int(self.fit_call.given.get("epochs") or 1))
        with fit.ready(0):
            schedule = dry_run(optimizer, callbacks_of(self.fit_call.given), planned, epochs)
            observer = fit.observer(detail=False)
            with catching(observer.record):
                fit.build_optimizer()
            before = trained_values(model)
            record = observer.record if observer.record.failure else fit.take_step(batch, 0)
            facts = optimizer_facts(
                getattr(model, attribute),
                model,
                before,
                record.failure,
                rate_given=given or schedule.by_callback,
                planned=planned,
                schedule=schedule,
                held=fit.held_at_start if attribute == "optimizer" else None,
                given_gradients=bool(record.gradients) if fit.own_step else None,
                user_built=built,
                library=setup.library_name(fit.scope),
            )
            inner = getattr(optimizer, "inner_optimizer", optimizer)
            position = fit.seen.position_given(inner, "learning_rate") if built else None
            facts = replace(facts, rate_position=position, epochs=epochs)
        fit.reset()
        fit.rate_of_short_runs = rate_of_short_runs(schedule)
        return facts

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        fit = self.fit
        fit.reset()
        with fit.ready(0):
            facts = evaluation.measure(fit, batches)
            facts = replace(
                facts, **evaluation.measure_callbacks(fit), reshuffled=reshuffled_predictions(self.fit_call.frame)
            )
        fit.reset()
        return facts

    def train(self, request: Train) -> ShortRun:
        before = self.fit.steps.compiling_seconds
        run = short_runs.train(self.fit, request)
        compiling = self.fit.steps.compiling_seconds - before  # once, for any number of steps and runs
        return replace(run, seconds=max(run.seconds - compiling, 1e-3))
