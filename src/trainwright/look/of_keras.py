"""The look at each `fit` of a Keras model: what it was given is kept when it begins, and measured once the script is over.

Keras's steps are compiled, and show nothing of themselves. So the model is given back what it had when its `fit` began, behind
the end of the script, and its first step is taken again, by itself. The script has run as it would without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import process_time
from types import CodeType, FrameType
from typing import Any

from trainwright.adapters.base import Train
from trainwright.adapters.from_objects import MOST_EPOCHS
from trainwright.adapters.keras import evaluation, first_update
from trainwright.adapters.keras.calls import callbacks_of
from trainwright.adapters.keras.input.batch import measure_batch
from trainwright.adapters.keras.input.data_sets import planned_updates, try_rows
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.learning import FitLearner
from trainwright.adapters.keras.setup import setup_facts
from trainwright.adapters.keras.state import KerasState
from trainwright.adapters.keras.step_facts import measure_step
from trainwright.adapters.keras.training import FitTraining
from trainwright.adapters.learning import measure_trained
from trainwright.adapters.script_end.raised import raised_facts
from trainwright.core import FactsByKind, Finding, Repair, failure_in
from trainwright.look.asking import first_fault, judge_facts
from trainwright.look.repairs_of_keras import RepairedFit
from trainwright.look.results import MOST_LOOKS, LookResult
from trainwright.look.trials import Trials
from trainwright.seams.failures.blame import failure_of, frames_of, is_own, own_errors
from trainwright.seams.failures.repair_log import was_made
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.source.places import callers
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.undefined_names import undefined_names
from trainwright.stages import (
    DatasetFacts,
    ForwardFacts,
    GradientFacts,
    LearningFacts,
    LossFacts,
    OverfitFacts,
    SetupFacts,
)
from trainwright.stages.learning import FEWEST_UPDATES
from trainwright.tensors.keras.which_keras import use_version_of

# The values of a model of which copies are kept.
MOST_VALUES = 100_000_000
# For one measurement, for reading rows of a set, and for all looks together.
STAGE_SECONDS, READING_SECONDS, MOST_SECONDS = 40.0, 1.0, 120.0
EVALUATED_BATCHES = 2


@dataclass(frozen=True, eq=False)
class KeptFrame:
    """A frame as it was: its script goes on."""

    f_code: CodeType
    f_lineno: int
    f_lasti: int
    f_globals: Mapping[str, Any]
    f_locals: Mapping[str, Any]
    f_back: KeptFrame | None


def keep_frame(frame: FrameType) -> KeptFrame:
    """A frame of the script as it is now, with those that called it."""
    names, back = dict(frame.f_globals), next(callers(frame), None)
    inner = names if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    called = keep_frame(back) if back is not None else None
    return KeptFrame(frame.f_code, frame.f_lineno, frame.f_lasti, names, inner, called)


@dataclass(eq=False)
class KeptFit:
    """One `fit` that was made."""

    training: FitTraining
    number: int
    """The training's."""
    is_planned: bool
    """Whether the script trains with these arguments; False: they only say what to measure."""
    is_written_wrongly: dict[str, Any]
    """What the setup's facts say of the script's names."""
    repairs: Sequence[Repair] = ()
    """Those in force."""
    trained: KerasState | None = None
    """The weights at its end."""
    updates: int = 0
    planned: int | None = None


class FitLooks:
    """The looks at a script's calls of `fit`.

    Args:
        repairs: are in force in the training of a number; an ordinary run has none.
    """

    def __init__(self, repairs: Sequence[Repair] = (), repaired_training: int = 1) -> None:
        self._repairs, self._repaired_training = repairs, max(1, repaired_training)
        self._fits: list[KeptFit] = []
        self._main = sys.modules["__main__"]

    def begin_fit(
        self, model: Any, given: dict[str, Any], data: FitData, frame: FrameType, training: int
    ) -> tuple[FitData, RepairedFit | None]:
        """Keep what a `fit` was given, and change that; returns the sets that it now has, and the repairs of its steps, if any.

        Args:
            data: the sets among it.
            training: its number.
        """
        use_version_of(model)
        place, self._main = (frame.f_code, frame.f_lineno), sys.modules["__main__"]
        known = [(f.training.model, f.training.frame) for f in self._fits]
        is_known = any(one is model and (at.f_code, at.f_lineno) == place for one, at in known)
        if is_known or len(self._fits) >= MOST_LOOKS or not _has_room(model):
            return data, None
        found = seen().copy()
        kept = {**given, "callbacks": callbacks_of(given)} if given.get("callbacks") is not None else dict(given)
        with quiet():
            fit = FitTraining(model, kept, keep_frame(frame), data, found)  # type: ignore[arg-type]
        wrong = {"misspelled": misspelled_methods(user_scopes(), found.modules), "undefined": undefined_names()}
        is_repaired = bool(self._repairs) and training == self._repaired_training
        repairs = self._repairs if is_repaired else ()
        repairing = RepairedFit(fit, repairs) if is_repaired else None
        self._fits.append(KeptFit(fit, training, given.get("epochs") != MOST_EPOCHS, wrong, repairs))
        given.update(fit.data.for_training())
        return fit.data, repairing

    def end_fit(self, model: Any, training: int, updates: int, planned: int | None, logged: tuple[str, ...]) -> None:
        """A `fit` is over, after so many updates; its epochs logged numbers of these names."""
        for variable in model.trainable_variables:
            seen().trained_earlier[variable] = True
        for fit in self._fits:
            if fit.number == training:
                fit.training.logged_names = logged
                fit.trained, fit.updates, fit.planned = KerasState([model]), updates, planned

    def look(self, error: BaseException | None) -> list[LookResult]:
        """Look at each `fit`, once the script is over.

        Args:
            error: what ended it.
        """
        found: list[LookResult] = []
        until = process_time() + MOST_SECONDS
        raised = error if isinstance(error, Exception) and _is_of_fit(error) else None
        now, sys.modules["__main__"] = sys.modules["__main__"], self._main  # whose lines are looked up
        try:
            with quiet(), silenced():
                for fit in self._fits:
                    ended = raised if fit is self._fits[-1] else None
                    found.append(_look_at(fit, ended, until))
        finally:
            sys.modules["__main__"] = now
        return found


def _has_room(model: Any) -> bool:
    """Whether a model can be trained, and its weights copied."""
    is_compiled = getattr(model, "compiled", False) or getattr(model, "_is_compiled", False)
    return is_compiled and not (model.built and model.count_params() > MOST_VALUES)


def _is_of_fit(error: Exception) -> bool:
    """Whether a `fit` was under way."""
    frames = frames_of(error)
    return any(f.f_code.co_name == "fit" and "keras" in str(f.f_globals.get("__name__", "")) for f in frames)


def _look_at(fit: KeptFit, error: Exception | None, until: float) -> LookResult:
    """The look at one training."""
    training = fit.training
    use_version_of(training.model)
    training.put_back()
    failure = failure_of(error) if error is not None else None
    try:
        facts = _measure(fit, until)
        is_end = failure_in(facts.values()) is not None
        if is_end and failure is None:  # the run itself has met no such thing
            facts = {kind: one for kind, one in facts.items() if getattr(one, "failure", None) is None}
        elif is_end and error is not None:
            setup = facts.get(SetupFacts, SetupFacts())
            assert isinstance(setup, SetupFacts)
            facts[SetupFacts] = raised_facts(error, failure_of(error), training.seen, setup)
        look = _judge(fit, facts, until)
    finally:
        training.put_back()  # objects of a process that goes on are the caller's
    own = next(iter(own_errors()), None)
    if own is not None:
        raise own
    made = tuple(repair.does for repair in fit.repairs if was_made(repair))
    return replace(look, is_end=is_end and error is not None, repaired=made)


def _measure(fit: KeptFit, until: float) -> FactsByKind:
    """The facts of a training, stage by stage, as far as its code goes."""
    training, facts = fit.training, FactsByKind()

    def ask(measure: Callable[[], Any]) -> bool:
        try:
            with stopped_after(min(STAGE_SECONDS, max(1.0, until - process_time()))):
                found = measure()
        except OutOfTime:
            return False
        except Exception as error:  # the script's: its data or its model raise
            if is_own(error, measuring=True):
                raise
            return False
        facts.update({type(one): one for one in (found if isinstance(found, tuple) else (found,)) if one is not None})
        return failure_in(facts.values()) is None

    ask(lambda: replace(setup_facts(training, _count_planned(fit, facts)), **fit.is_written_wrongly))
    ask(lambda: first_update.measure_dataset(training))
    if not ask(lambda: measure_batch(training.data, training.model)):
        return facts
    is_whole = ask(lambda: measure_step(training))
    if is_whole:
        ask(lambda: first_update.measure_optimizer(training, _count_planned(fit, facts)))
    if all(getattr(facts.get(kind), "failure", None) is None for kind in (ForwardFacts, LossFacts)):
        ask(lambda: evaluation.measure(training, EVALUATED_BATCHES))
    return facts


def _count_planned(fit: KeptFit, facts: FactsByKind) -> int | None:
    """How many updates the real training would make; None: unknown, or none is planned."""
    dataset, training = facts.get(DatasetFacts), fit.training
    epochs = dataset.epochs if isinstance(dataset, DatasetFacts) else None
    return planned_updates(training.data, training.model.optimizer, epochs) if fit.is_planned else None


def _judge(fit: KeptFit, facts: FactsByKind, until: float) -> LookResult:
    """The facts with what was tried, and the outcomes of the trials that rules ask for."""
    found = list[Finding]()
    trials: Trials | None = None
    if failure_in(facts.values()) is None and GradientFacts in facts:
        timed = first_update.train(fit.training, Train(steps=3, batches=1, seed=0))
        seconds = max(timed.seconds / max(1, len(timed.losses)), 1e-3)
        trials = Trials(
            partial(first_update.train, fit.training), lambda batches, changes: True, seconds, until, process_time
        )
        if (overfit := trials.memorize()) is not None:
            facts = {**facts, OverfitFacts: overfit}
    answer = trials.answer if trials is not None else LookResult(0, {}).answer
    judge_facts(facts, answer, found)
    if first_fault(found) is None:
        facts = {**facts, **_measure_learning(fit), **_try_rows(fit.training, facts, until)}
        judge_facts(facts, answer, [])
    if trials is None:
        return LookResult(fit.number, facts)
    return LookResult(fit.number, facts, outcomes=trials.outcomes, untried=trials.tell_untried())


def _try_rows(training: FitTraining, facts: FactsByKind, until: float) -> FactsByKind:
    """Steps on the extreme rows of the sets."""
    dataset, seconds = facts.get(DatasetFacts), min(STAGE_SECONDS, until - process_time()) / 4
    is_compiled = bool(training.model.jit_compile)  # whose steps do not raise as these would
    if not isinstance(dataset, DatasetFacts) or seconds <= 0 or is_compiled:
        return {}
    tried = try_rows(training.data, dataset, seconds, scope=training.scope, step_on=training.step_on)
    return {type(tried): tried}


def _measure_learning(fit: KeptFit) -> FactsByKind:
    """What the training shows on rows that it was not trained on, with its last weights and with its first ones."""
    training = fit.training
    if fit.trained is None or fit.updates < FEWEST_UPDATES:
        return {}
    fit.trained.put_back()
    try:
        with stopped_after(STAGE_SECONDS):
            found = measure_trained(
                FitLearner(training),
                updates=fit.updates,
                planned=fit.planned,
                seconds=READING_SECONDS,
                reset=training.reset,
            )
    except OutOfTime:
        return {}
    finally:
        training.reset()
    return {LearningFacts: found} if found is not None else {}
