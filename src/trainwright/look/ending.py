"""The exception that ended the run: the call that raised is made again and measured, and the exception's frames are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from trainwright.adapters.script_end.raised import failure_in, is_repeated, is_same, raised_facts
from trainwright.core import Facts, Failure, Role
from trainwright.seams.devices.memory_owners import is_out_of_memory, lacks_gpu_memory
from trainwright.seams.failures.blame import frames_of, is_own, told, tolerated
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.source.places import is_ours
from trainwright.stages import (
    BatchFacts,
    Comparison,
    EvaluationFacts,
    ForwardFacts,
    GradientFacts,
    LossFacts,
    SetupFacts,
)
from trainwright.stages.gradients import KeptTensor

if TYPE_CHECKING:
    from trainwright.adapters.torch.failed_call import BatchOutside, LossOutside, ModelOutside
    from trainwright.look.look import Looking

Held = dict[type[Facts], Facts]
# A call that takes longer, with its probes, is left.
MOST_SECONDS = 20.0
_TRAINER, _EVALUATIONS = "transformers.trainer", ("evaluate", "predict")
_METRICS = ("sklearn.metrics", "torchmetrics.", "torcheval.", "evaluate.")


def measure_end(error: Exception, looking: Looking | None) -> Held:
    """The facts of what raised: of a step that was looked at, or of a call, which is made again.

    Args:
        looking: the looks at trainings; None: torch was not imported.
    """
    failure = told(error)
    if looking is None:
        return {SetupFacts: raised_facts(error, failure, None, SetupFacts())}
    with quiet(), silenced():
        if looking.trainer is None and (refused := _find_refused(error, failure)) is not None:
            evaluation = EvaluationFacts(in_loop=True, metrics_failure=failure, comparisons=(refused,))
            return {EvaluationFacts: evaluation, SetupFacts: _setup(error, failure, looking)}
        last = looking.done[-1].facts if looking.done else {}
        if looking.trainer is not None and _is_of_evaluation(error):
            if looking.done:
                looking.failed = looking.done.pop()
            setup = _setup(error, failure, looking, last.get(SetupFacts) or _setup_of_trainer(looking))
            return {**last, **_evaluate_again(looking.trainer, failure), SetupFacts: setup}
        if looking.trainer is not None and is_out_of_memory(error):
            setup = _setup(error, failure, looking, last.get(SetupFacts) or _setup_of_trainer(looking))
            return {ForwardFacts: _measure_memory(looking.trainer, failure), SetupFacts: setup}
        raised = failure_in(last.values())
        if raised is not None and is_same(raised, failure):
            looking.failed = looking.done.pop()
            return {**last, SetupFacts: _setup(error, failure, looking, last.get(SetupFacts))}
        is_of_backward = any(f.f_globals.get("__name__", "").startswith("torch.autograd") for f in frames_of(error))
        if isinstance(gradients := last.get(GradientFacts), GradientFacts) and is_of_backward:
            setup = _setup(error, failure, looking, last.get(SetupFacts))
            carried = [KeptTensor(name=name, where=setup.place(Role.TRAIN_CALL)) for name in looking.done[-1].carried]
            kept = gradients.kept or tuple(carried)
            return {GradientFacts: replace(gradients, second_failure=failure, kept=kept), SetupFacts: setup}
        facts = _measure_outside(error, failure, looking)
        if looking.trainer is not None and looking.frame is not None and not looking.done:
            from trainwright.look.sets import sets_of_trainer
            from trainwright.look.state import Look

            scope = {**looking.frame.f_globals, **looking.frame.f_locals}
            looking.failed = Look(sets=sets_of_trainer(looking.trainer, scope, looking.frame))
        if looking.done and not {BatchFacts, ForwardFacts, LossFacts}.isdisjoint(facts):
            looking.failed = looking.done[-1]
        return _of_later_batch(facts) if looking.done else facts


def _is_of_evaluation(error: Exception) -> bool:
    """Whether a Trainer's evaluation was under way."""
    codes = {frame.f_code.co_name for frame in frames_of(error) if frame.f_globals.get("__name__") == _TRAINER}
    return not codes.isdisjoint(_EVALUATIONS)


def _evaluate_again(trainer: Any, failure: Failure) -> Held:
    """The facts of a Trainer's evaluation, if it raises again what it raised before."""
    from trainwright.adapters.trainer.evaluation import measure

    try:
        with stopped_after(MOST_SECONDS):
            found = measure(trainer)
    except OutOfTime:
        return {}
    raised = found.failure or found.metrics_failure
    is_same_line = raised is not None and (raised.type, raised.where) == (failure.type, failure.where)  # of fewer rows
    return {EvaluationFacts: found} if is_same_line else {}


def _measure_memory(trainer: Any, failure: Failure) -> ForwardFacts:
    from trainwright.look.of_trainer import measure_trainers_memory

    facts = ForwardFacts(failure=failure)
    try:
        with tolerated(), stopped_after(MOST_SECONDS):  # a step that raises something else tells nothing
            return replace(facts, memory=measure_trainers_memory(trainer))
    except OutOfTime:
        pass
    return facts


def _find_refused(error: Exception, failure: Failure) -> Comparison | None:
    """What a comparison with labels, or a library's metric function, was given that raised."""
    import numpy as np
    import torch

    from trainwright.seams.torch.marks import Mark, comparison_of

    for frame in frames_of(error):
        given, name = frame.f_locals, frame.f_code.co_name
        pair: list[Any] = []
        word = str(given.get("word", "=="))
        if str(frame.f_globals.get("__name__", "")).startswith(_METRICS):
            pair, word = [given.get("y_pred", given.get("y_score")), given.get("y_true")], name
            pair = [torch.as_tensor(np.asarray(one)) for one in pair if one is not None]
        elif name == "_compare" and is_ours(frame.f_code.co_filename) and given["meets"]:
            pair = [given["predictions"], given["labels"]]
        elif name == "passed_on_equal" and is_ours(frame.f_code.co_filename):
            # Whose answers these are is known only of an evaluation that is looked at; elsewhere labels are no fractions.
            pair = sorted([given["self"], given["other"]], key=lambda one: not one.is_floating_point())
            pair = pair if pair[0].is_floating_point() and not pair[1].is_floating_point() else []
        if len(pair) == 2 and pair[0].dim() and pair[1].dim():
            scores = pair[0] if pair[0].is_floating_point() else None
            made: Comparison = comparison_of(word, *pair, None, Mark(frozenset()), scores, failure.where, failure)
            return made
    return None


def _of_later_batch(facts: Held) -> Held:
    """The facts of a model that fails with this batch, and works with as many rows as others have."""
    forward, batch = facts.get(ForwardFacts), facts.get(BatchFacts)
    if not isinstance(forward, ForwardFacts) or not isinstance(batch, BatchFacts) or forward.works_at_rows is None:
        return facts
    failure, rows = forward.failure, batch.rows
    fixed = replace(
        forward,
        failure=None,
        works_at_rows=None,
        other_rows_failure=failure,
        fails_at_rows=rows,
        other_rows_from="a later batch",
        fixed_at=failure.where if failure is not None else None,
    )
    return facts | {ForwardFacts: fixed, BatchFacts: replace(batch, rows=forward.works_at_rows)}


def _setup(error: Exception, failure: Failure, looking: Looking, known: Facts | None = None) -> SetupFacts:
    return raised_facts(error, failure, seen(), known if isinstance(known, SetupFacts) else _before_update(looking))


def _before_update(looking: Looking) -> SetupFacts:
    """What is known of a loop that has not made an update: the lines of the loader that it has drawn from."""
    from trainwright.adapters.torch.loader_lines import loader_places
    from trainwright.adapters.torch.words import LOOP

    loader = looking.last_loader()
    return SetupFacts(words=LOOP, places=loader_places(loader, seen()) if loader is not None else {})


def _measure_outside(error: Exception, failure: Failure, looking: Looking) -> Held:
    """The facts of the outermost call of a model, a loss or a loader in the traceback."""
    from trainwright.adapters.torch.failed_call import failed_call

    call = failed_call(error, seen()) if not lacks_gpu_memory(str(error)) else None
    facts = _measure_again(call, failure) if call is not None else {}
    if (trainer := looking.trainer) is None:
        setup = _setup(error, failure, looking)
        return facts | {SetupFacts: call.known(setup) if call is not None and facts else setup}
    from trainwright.adapters.torch.called_model import accepted_names
    from trainwright.adapters.trainer.row_changes import changes_of_rows

    if isinstance(batch := facts.get(BatchFacts), BatchFacts):
        names, takes_any = accepted_names(trainer.model)
        facts[BatchFacts] = replace(
            batch,
            accepts=names,
            accepts_any=takes_any,
            **changes_of_rows(trainer),
        )
    return facts | {SetupFacts: _setup(error, failure, looking, _setup_of_trainer(looking))}


def _setup_of_trainer(looking: Looking) -> SetupFacts:
    from trainwright.adapters.trainer.setup import setup_facts

    return setup_facts(looking.trainer, cast("Any", looking.frame), seen())


def _measure_again(call: ModelOutside | LossOutside | BatchOutside, failure: Failure) -> Held:
    """The facts of a call, if it raises again what it raised before; otherwise it depends on something that has changed."""
    try:
        with stopped_after(MOST_SECONDS):
            facts = call.measure()
    except OutOfTime:
        return {}
    except Exception as error:  # the user's: when it was called again, something else failed
        if is_own(error, measuring=True):
            raise
        return {}
    raised = failure_in(facts)
    return {type(one): one for one in facts} if raised is not None and is_repeated(raised, failure) else {}
