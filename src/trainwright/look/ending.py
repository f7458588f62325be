"""The exception that ended the run: the call that raised is made again and measured, and the exception's frames are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.adapters.script_end.raised import is_repeated, raised_facts
from trainwright.core import Facts, Failure, Role, failure_in
from trainwright.seams.devices.memory_owners import lacks_gpu_memory
from trainwright.seams.failures.blame import describe_error, frames_of, is_own
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet, seen
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    EmptySet,
    ForwardFacts,
    GradientFacts,
    KeptTensor,
    LossFacts,
    SetupFacts,
    SplitFacts,
)
from trainwright.tensors.items import length

if TYPE_CHECKING:
    from trainwright.adapters.torch.failed_call import CallOutside
    from trainwright.core import FactsByKind
    from trainwright.look.look import Looking

# The data set of a call outside of training: nothing is known of it.
_UNREAD = DatasetFacts(train=SplitFacts(name="train", rows=None, kind="none"))
# A call that takes longer, with its probes, is left.
MOST_SECONDS = 20.0


def measure_end(error: Exception, looking: Looking | None) -> FactsByKind:
    """The facts of what raised: of a step that was looked at, or of a call, which is made again.

    Args:
        looking: the looks at trainings; None: torch was not imported.
    """
    failure = describe_error(error)
    if looking is None:
        return {SetupFacts: raised_facts(error, failure, None, SetupFacts())}
    with quiet(), silenced():
        if (own := looking.kind.measure_end(error, failure, looking)) is not None:
            return own | {SetupFacts: _setup(error, failure, looking, own.get(SetupFacts))}
        last = looking.done[-1].facts if looking.done else {}
        raised = failure_in(last.values())
        if raised is not None and raised.is_same(failure):
            looking.failed = looking.done.pop()
            return {**last, SetupFacts: _setup(error, failure, looking, last.get(SetupFacts))}
        is_of_backward = any(f.f_globals.get("__name__", "").startswith("torch.autograd") for f in frames_of(error))
        if isinstance(gradients := last.get(GradientFacts), GradientFacts) and is_of_backward:
            setup = _setup(error, failure, looking, last.get(SetupFacts))
            carried = [KeptTensor(name=name, where=setup.place(Role.TRAIN_CALL)) for name in looking.done[-1].carried]
            kept = gradients.kept or tuple(carried)
            return {GradientFacts: replace(gradients, second_failure=failure, kept=kept), SetupFacts: setup}
        facts = _measure_outside(error, failure, looking)
        if not looking.done and (sets := looking.kind.form_sets()) is not None:
            from trainwright.look.state import Look

            looking.failed = Look(sets=sets)
        if looking.done and not {BatchFacts, ForwardFacts, LossFacts}.isdisjoint(facts):
            looking.failed = looking.done[-1]
        return _of_later_batch(facts) if looking.done else facts


def measure_unbegun(looking: Looking) -> FactsByKind:
    """The facts of a training without an update, whose loader has no batch to give; none: there is no such loader."""
    if (loader := looking.empty_loader) is None:
        return {}
    rows, setup = length(loader.dataset), looking.kind.measure_early_setup(loader)
    if not rows:
        return {
            SetupFacts: replace(
                setup, empty_set=EmptySet(kind=type(loader.dataset).__name__, expression="", where=None)
            )
        }
    train = SplitFacts(name="train", rows=rows)
    dataset = DatasetFacts(train=train, batch_size=loader.batch_size or 0, drops_last=bool(loader.drop_last))
    return {SetupFacts: setup, DatasetFacts: dataset}


def _of_later_batch(facts: FactsByKind) -> FactsByKind:
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
    early = known if isinstance(known, SetupFacts) else looking.kind.measure_early_setup(looking.last_loader())
    return raised_facts(error, failure, seen(), early)


def _measure_outside(error: Exception, failure: Failure, looking: Looking) -> FactsByKind:
    """The facts of the outermost call of a model, a loss or a loader in the traceback."""
    from trainwright.adapters.torch.failed_call import failed_call

    call = failed_call(error, seen()) if not lacks_gpu_memory(str(error)) else None
    facts = _measure_again(call, failure) if call is not None else {}
    return looking.kind.complete_called(facts, _setup(error, failure, looking), call if facts else None)


def _measure_again(call: CallOutside, failure: Failure) -> FactsByKind:
    """The facts of a call, if it raises again what it raised before; otherwise it depends on something that has changed."""
    try:
        with stopped_after(MOST_SECONDS):
            facts = (_UNREAD, *call.measure())
    except OutOfTime:
        return {}
    except Exception as error:  # the user's: when it was called again, something else failed
        if is_own(error, measuring=True):
            raise
        return {}
    raised = failure_in(facts)
    return {type(one): one for one in facts} if raised is not None and is_repeated(raised, failure) else {}
