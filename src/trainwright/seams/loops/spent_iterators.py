"""Finds an iterator made before the epoch loop that the training loop consumes in each epoch: empty after the first."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.loops.found_loops import Loop
from trainwright.seams.loops.lengths import count_of
from trainwright.seams.source.written import assignment_place, code_node
from trainwright.stages.reading import SpentIterator

_ONCE = (map, zip, filter, enumerate, itertools.chain, itertools.islice, itertools.starmap)
# Functions that iterate over their argument unchanged.
_HANDING_ON = frozenset(["enumerate", "tqdm", "trange", "zip", "track", "iter"])


def spent_iterator(loop: Loop) -> SpentIterator | None:
    """The iterator that a loop consumes and that no later epoch restarts; None if there is none.

    A loop with a `break` may leave some items for the next epoch.
    """
    epochs = count_of(loop.around[0], loop.scope) if loop.around else None
    if epochs is None or epochs < 2 or not isinstance(loop.node, ast.For):
        return None
    if any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(loop.node)):
        return None
    made = {n.id for n in ast.walk(loop.around[0]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for name in _gone_over(loop.node.iter):
        if name not in made and _ends_for_good(value := loop.scope.get(name)):
            where = assignment_place(loop.file, name, loop.line)
            return SpentIterator(
                name=name,
                kind=type(value).__name__.strip("_"),
                epochs=epochs,
                where=where or Place(loop.file, loop.line),
            )
    return None


def _gone_over(node: ast.expr) -> Iterator[str]:
    """The names that a loop iterates over, through functions that yield each item unchanged."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _HANDING_ON:
        for given in node.args:
            yield from _gone_over(given)


def _ends_for_good(value: Any) -> bool:
    """Whether a second pass over a value yields nothing, and the first one ends."""
    if isinstance(value, GeneratorType):
        code = code_node(value.gi_code)
        return code is not None and not any(isinstance(n, ast.While) for n in ast.walk(code))
    return isinstance(value, _ONCE) or any(k.__name__ == "_BaseDataLoaderIter" for k in type(value).__mro__)
