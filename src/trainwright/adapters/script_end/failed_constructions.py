"""Constructors that refused their arguments: what did not fit, read from the frames of the exception."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from trainwright.core.finding import Place
from trainwright.frameworks.error_texts import NO_SAMPLES, TEXT_REFUSED
from trainwright.seams.listening.torch_patches import loader_of
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import assignment_place, call_end, call_node, look_up
from trainwright.stages.setup import EmptySet, TextLabels

# More rows of a column of texts are not read.
_MOST_TEXTS = 100_000


def empty_set(error: BaseException) -> EmptySet | None:
    """The data set without rows whose loader raised."""
    if NO_SAMPLES not in str(error) and not isinstance(error, StopIteration):
        return None
    for link in _links(error):
        held = link.tb_frame.f_locals
        loader = loader_of(held.get("self"))
        for value in (held.get("dataset"), held.get("data_source"), getattr(loader, "dataset", None)):
            if value is not None and _rows(value) == 0:
                return _described(value, error)
    return None


def _described(dataset: Any, error: BaseException) -> EmptySet:
    call, frame, scope = _users_call(error)
    names = [n for n, v in scope.items() if v is dataset and not n.startswith("_")]
    made = assignment_place(frame.f_code.co_filename, names[0], frame.f_lineno) if names and frame else None
    at = Place(show(frame.f_code.co_filename), call.lineno) if call is not None and frame is not None else None
    return EmptySet(kind=type(dataset).__name__, expression=names[0] if names else "", where=made or at)


def text_labels(error: BaseException) -> TextLabels | None:
    """The texts that a call for a tensor refused, if they repeat as labels do: each of them twice on average."""
    if not isinstance(error, (TypeError, ValueError)) or not any(said in str(error) for said in TEXT_REFUSED):
        return None
    call, _, scope = _users_call(error)
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


def _users_call(error: BaseException) -> tuple[ast.Call | None, FrameType | None, dict[str, Any]]:
    """The innermost call in the user's code that led to an exception, its frame and the names in it."""
    users = [link for link in _links(error) if is_users(link.tb_frame.f_code.co_filename)]
    if not users:
        return None, None, {}
    frame = users[-1].tb_frame
    call = call_node(frame.f_code.co_filename, users[-1].tb_lineno, end=call_end(frame, users[-1].tb_lasti))
    return call, frame, {**frame.f_globals, **frame.f_locals}


def _links(error: BaseException) -> Iterator[TracebackType]:
    link = error.__traceback__
    while link is not None:
        yield link
        link = link.tb_next
