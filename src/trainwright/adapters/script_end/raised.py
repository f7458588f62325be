"""The setup facts of a script that ended with an exception, and whether a call that was made again raised it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trainwright.adapters.script_end.failed_constructions import empty_set, text_labels
from trainwright.adapters.script_end.missing_names import missing_name
from trainwright.adapters.script_end.refused_calls import refused_anywhere
from trainwright.core import Facts, Failure
from trainwright.frameworks.error_texts import EMPTY_LIST, FROM_WORKER
from trainwright.seams.devices.memory_owners import accelerators, lacks_gpu_memory
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.requirements import versions
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.written import failed_lines
from trainwright.stages.setup import SetupFacts


def raised_facts(error: Exception, failure: Failure, seen: BuiltObjects | None, known: SetupFacts) -> SetupFacts:
    """The setup facts of a script that ended with an exception.

    Args:
        known: those that were known before.
    """
    told = seen.refused[1] if seen is not None and seen.refused is not None and seen.refused[0] is error else None
    facts = replace(
        known,
        failure=failure,
        versions=versions(),
        refused=told if told is not None else refused_anywhere(error, failure),
        missing=missing_name(error, failure),
        accelerators=accelerators("cuda") if lacks_gpu_memory(str(error)) else known.accelerators,
        frozen_at=seen.freezing_lines() if seen else (),
        misspelled=misspelled_methods(
            (*user_scopes(), *(line.scope for line in failed_lines(error))), seen.modules if seen else ()
        ),
        empty_set=empty_set(error),
        text_labels=text_labels(error),
    )
    if seen is None or EMPTY_LIST not in failure.message:
        return facts
    from trainwright.adapters.torch.empty_parameters import empty_parameters
    from trainwright.adapters.torch.words import TORCH

    return replace(facts, words=TORCH, **empty_parameters(error, seen))


def failure_in(facts: Iterable[Facts]) -> Failure | None:
    """What a call raised."""
    found = (getattr(one, "failure", None) for one in facts)
    return next((f for f in found if isinstance(f, Failure)), None)


def is_repeated(raised: Failure, failure: Failure) -> bool:
    """Whether the call made again failed as it did the first time; rows drawn anew may have other sizes."""
    of_worker = FROM_WORKER in failure.message
    return is_same(raised, failure) or (of_worker and raised.type == failure.type)


def is_same(one: Failure, other: Failure) -> bool:
    """Whether two failures are of one type, with one message."""
    return (one.type, one.message) == (other.type, other.message)
