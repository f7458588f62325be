"""The driver: carries out the plan's requests by calling the adapter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainwright.adapters.base import Adapter, Learn, Run, Train
from trainwright.core.stage import Stage
from trainwright.seams.devices.release import is_device_error
from trainwright.seams.failures.blame import failure_of, is_own
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.seen import seen
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.undefined_names import undefined_names
from trainwright.stages import LearningFacts, OddRowFacts, SetupFacts
from trainwright.walk.closing import versions
from trainwright.walk.plan import Apply, Measure, Request, TryRows, plan
from trainwright.walk.received_rows import samples_of
from trainwright.walk.walk import ITSELF_FAILED, Walk

# An evaluation is observed in two passes of at most about ten seconds; with full loaders it gets fifteen more.
EVALUATION_SECONDS = 30.0
# Rows to be shown are looked at behind all stages, for at most so long.
ROWS_SECONDS = 6.0


def pull(walk: Walk, adapter: Adapter) -> None:
    """Walk a training whose step can be called. On Ctrl-C the walk keeps its results so far."""
    steps = plan(walk)
    answer: Any = None
    walk.note_own_errors()
    try:
        while True:
            try:
                request = steps.send(answer)
            except StopIteration:
                _look_at_rows(walk, adapter)
                return
            answer = _in_time(walk, adapter, request)
            walk.note_own_errors()
    except KeyboardInterrupt:
        walk.interrupted = True
        walk.message = "Interrupted: the report shows the results so far."


def _look_at_rows(walk: Walk, adapter: Adapter) -> None:
    """Keep some rows for the report. What raises here was reported with its stage."""
    if not walk.shows or SetupFacts not in walk.facts:
        return
    seconds = max(ROWS_SECONDS / 3, min(ROWS_SECONDS, walk.clock.left))
    try:
        with stopped_after(seconds):
            walk.samples = samples_of(adapter.look_at_rows(seconds / 2))
    except OutOfTime:
        return
    except (
        Exception
    ) as error:  # ours, or the pipeline's, which was met before: a report without rows says all that it says
        if walk.strict and is_own(error, measuring=True):
            raise


def _in_time(walk: Walk, adapter: Adapter, request: Request) -> Any:
    """The adapter's answer. Script code that does not return in time is stopped, and the stage says so."""
    seconds = walk.clock.hard_left
    if isinstance(request, Measure) and request.stage == Stage.EVALUATION:
        seconds = max(seconds / 2, min(seconds, EVALUATION_SECONDS))  # what comes after it needs some, too
    try:
        with stopped_after(seconds):
            return _answer(walk, adapter, request)
    except OutOfTime:
        why = f"stopped because the script's code did not return in time: the budget is {walk.clock.budget:g} s"
        if isinstance(request, Measure):
            walk.skip(request.stage, why)
            return None
        if isinstance(request, Learn):
            return LearningFacts(planned=request.planned, cut=why)
        if isinstance(request, TryRows):
            return OddRowFacts()
        return Run(skipped=why) if isinstance(request, Train) else TimeoutError(why)


def _answer(walk: Walk, adapter: Adapter, request: Request) -> Any:
    if isinstance(request, Measure):
        try:
            return _measure(adapter, request)
        except Exception as error:  # recorded: a stage that cannot be measured is a failed stage
            walk.stage_failed(request.stage, error)
            return None
    if isinstance(request, Train):
        try:
            return adapter.train(replace(request, seed=request.seed + walk.seed))
        except Exception as error:  # recorded: ours apart, the pipeline's, raised outside of a step, in the run
            if is_own(error, measuring=True):
                walk.internal_error("a training run", error)
                return Run(skipped=ITSELF_FAILED)
            return Run(failure=failure_of(error))
    if isinstance(request, Learn):
        try:
            return adapter.learn(request)
        except Exception as error:  # recorded: as for short runs
            if is_own(error, measuring=True):
                walk.internal_error("showing whether it learns", error)
                return LearningFacts(planned=request.planned, cut=ITSELF_FAILED)
            return LearningFacts(planned=request.planned, cut=f"it raised {failure_of(error)}")
    if isinstance(request, TryRows):
        try:
            return adapter.try_rows(dataset=request.dataset, seconds=request.seconds)
        except Exception as error:  # recorded: a step that raises is an answer, so this is ours or the data's
            if is_own(error, measuring=True):
                walk.internal_error("steps on the extreme rows", error)
            return OddRowFacts()
    assert isinstance(request, Apply)
    try:
        adapter.apply(request.repair)
    except Exception as error:  # recorded by the walk: a repair that cannot be made leaves the finding standing
        return error
    return None


def _measure(adapter: Adapter, request: Measure) -> Any:
    match request.stage:
        case Stage.SETUP:
            misspelled = misspelled_methods(user_scopes(), seen().modules)
            return replace(
                adapter.measure_setup(), versions=versions(), misspelled=misspelled, undefined=undefined_names()
            )
        case Stage.DATASET:
            return adapter.measure_dataset()
        case Stage.BATCH:
            return adapter.measure_batch()
        case Stage.FORWARD:
            return adapter.measure_step()
        case Stage.OPTIMIZER:
            return adapter.measure_optimizer()
        case Stage.EVALUATION:
            return adapter.measure_evaluation(request.batches)
    raise AssertionError(request.stage)


def put_back(adapter: Adapter) -> RuntimeError | None:
    """Undo a walk; returns the error of a device that an assertion has ended: nothing of it can be read or written."""
    try:
        adapter.put_back()
    except RuntimeError as error:
        if not is_device_error(error):
            raise
        return error
    return None
