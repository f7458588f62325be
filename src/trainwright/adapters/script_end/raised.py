"""The setup facts of a script that ended with an exception, read from its frames, and whether a call raised it again."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import Any

from trainwright.adapters.script_end.missing_names import missing_name
from trainwright.adapters.script_end.refused_calls import refused_anywhere
from trainwright.core import Failure, Place
from trainwright.frameworks.error_texts import EMPTY_LIST, FROM_WORKER, NO_SAMPLES, TEXT_REFUSED
from trainwright.seams.devices.memory_owners import accelerators, lacks_gpu_memory
from trainwright.seams.failures.blame import frames_of
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.listening.torch_patches import loader_of
from trainwright.seams.requirements import versions
from trainwright.seams.source.places import show
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.written import assignment_place, failed_lines, look_up
from trainwright.stages import EmptySet, SetupFacts, TextLabels

# More rows of a column of texts are not read.
_MOST_TEXTS = 100_000


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
        empty_set=_empty_set(error),
        text_labels=_text_labels(error),
    )
    if seen is None or EMPTY_LIST not in failure.message:
        return facts
    from trainwright.adapters.torch.empty_parameters import empty_parameters
    from trainwright.adapters.torch.words import TORCH

    return replace(facts, words=TORCH, **empty_parameters(error, seen))


def _empty_set(error: BaseException) -> EmptySet | None:
    """The data set without rows whose loader raised."""
    if NO_SAMPLES not in str(error) and not isinstance(error, StopIteration):
        return None
    for frame in frames_of(error):
        held = frame.f_locals
        loader = loader_of(held.get("self"))
        for value in (held.get("dataset"), held.get("data_source"), getattr(loader, "dataset", None)):
            if value is not None and _rows(value) == 0:
                return _described(value, error)
    return None


def _described(dataset: Any, error: BaseException) -> EmptySet:
    """The set, with the line that assigned it, or else that of the call that raised."""
    kind, lines = type(dataset).__name__, failed_lines(error)
    if not lines:
        return EmptySet(kind=kind, expression="", where=None)
    file, call = lines[-1].frame.f_code.co_filename, lines[-1].call()
    name = next((n for n, v in lines[-1].scope.items() if v is dataset and not n.startswith("_")), "")
    made = assignment_place(file, name, lines[-1].frame.f_lineno) if name else None
    at = Place(show(file), call.lineno) if call is not None else None
    return EmptySet(kind=kind, expression=name, where=made or at)


def _text_labels(error: BaseException) -> TextLabels | None:
    """The texts that a call for a tensor refused, if they repeat as labels do: each of them twice on average."""
    if not isinstance(error, (TypeError, ValueError)) or not any(said in str(error) for said in TEXT_REFUSED):
        return None
    lines = failed_lines(error)
    call, scope = (lines[-1].call(), lines[-1].scope) if lines else (None, {})
    nodes = (n for argument in (call.args if call else ()) for n in ast.walk(argument) if isinstance(n, ast.expr))
    for node in nodes:
        texts = _texts(_column(node, scope) if isinstance(node, ast.Subscript) else look_up(node, scope))
        names = sorted(set(texts))
        if texts and 2 * len(names) <= len(texts):
            return TextLabels(expression=ast.unparse(node), rows=len(texts), names=tuple(names))
    return None


def _column(node: ast.Subscript, scope: dict[str, Any]) -> Any:
    """The column that a name in brackets takes from a table or a dictionary; None for anything else."""
    table, key = look_up(node.value, scope), getattr(node.slice, "value", None)
    has_columns = isinstance(table, dict) or hasattr(table, "columns")
    return table[key] if has_columns and isinstance(key, str) and key in table else None


def _texts(value: Any) -> list[str]:
    """The elements of a list or of an array with one axis, if all are text; otherwise none."""
    if not isinstance(value, (list, tuple)) and not (hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1):
        return []
    found = list(itertools.islice(value, _MOST_TEXTS))
    return [str(v) for v in found] if all(isinstance(v, str) for v in found) else []


def _rows(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:  # the user's own __len__, or none
        return None


def is_repeated(raised: Failure, failure: Failure) -> bool:
    """Whether the call made again failed as it did the first time; rows drawn anew may have other sizes."""
    of_worker = FROM_WORKER in failure.message
    return raised.is_same(failure) or (of_worker and raised.type == failure.type)
