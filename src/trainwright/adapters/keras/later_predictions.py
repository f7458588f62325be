"""Predictions that the script makes after fit on a data set that is shuffled anew in each pass, and whose labels it reads
in another pass."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.nested_values import leaves
from trainwright.core import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet
from trainwright.seams.loops.found_loops import own_nodes, resolve, walk_reached
from trainwright.seams.source.places import callers, show
from trainwright.seams.source.written import code_node
from trainwright.stages import Reshuffled

# How many batches of each of two passes are compared.
MOST_BATCHES = 4
_TAKING = frozenset(["predict", "evaluate", "fit", "test_on_batch", "predict_on_batch"])
_READING = frozenset(["map", "unbatch", "as_numpy_iterator", "rebatch"])


def reshuffled_predictions(frame: FrameType) -> Reshuffled | None:
    """The first such prediction after a fit; None if there is none.

    Args:
        frame: the user's frame that called fit.
    """
    uses = list(_uses(frame))
    for data, predicted, place, written in uses:
        read = next((p for d, taking, p, _ in uses if d is data and not taking), None)
        if predicted and read is not None and _differs(data):
            return Reshuffled(expression=written, where=place, labels_at=read)
    return None


def _uses(frame: FrameType) -> Iterator[tuple[Any, bool, Place, str]]:
    """The data sets that later statements use: the set, whether it is predicted on or read, where, and how it is written."""
    for f in (frame, *callers(frame)):
        owner = code_node(f.f_code)
        nodes = [n for n in own_nodes(owner) if isinstance(n, ast.stmt)] if owner is not None else []
        later = [n for n in nodes if n.lineno > f.f_lineno and n.col_offset == min(s.col_offset for s in nodes)]
        for node, scope in walk_reached(later, {**f.f_globals, **f.f_locals}, _TAKING):
            file = show(scope.get("__file__") or f.f_code.co_filename)
            for used, predicted in _used(node):
                data = resolve(used, scope)
                if _is_set(data):
                    yield data, predicted, Place(file, used.lineno), ast.unparse(used)


def _used(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions that a node predicts on or iterates over."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "x"), None)
        if node.func.attr == "predict" and given is not None:
            yield given, True
        elif node.func.attr in _READING:
            yield node.func.value, False
    elif isinstance(node, (ast.For, ast.comprehension)):
        over = node.iter
        while (
            isinstance(over, ast.Call) and over.args and isinstance(over.func, ast.Name)
        ):  # enumerate(data), tqdm(data)
            over = over.args[0]
        yield over, False


def _is_set(value: Any) -> bool:
    """Whether a value yields batches in each pass: a data set or a loader, no array and no list."""
    packages = {k.__module__.partition(".")[0] for k in type(value).__mro__}
    return (
        hasattr(value, "__iter__") and not hasattr(value, "shape") and bool(packages & {"tensorflow", "torch", "keras"})
    )


def _differs(data: Any) -> bool:
    """Whether two passes give the labels, the second member of their batches, in different orders; False without labels."""
    with tolerated(), quiet(), silenced():  # the user's data may raise; then it tells nothing here
        first, second = (list(itertools.islice(iter(data), MOST_BATCHES)) for _ in range(2))
        pairs = [(_labels(a), _labels(b)) for a, b in zip(first, second)]
        return any(a is not None and b is not None and not np.array_equal(a, b) for a, b in pairs)
    return False


def _labels(batch: Any) -> np.ndarray | None:
    parts = batch if isinstance(batch, (tuple, list)) else ()
    arrays = leaves(parts[1]) if len(parts) > 1 else []
    return np.asarray(arrays[0]) if arrays else None
