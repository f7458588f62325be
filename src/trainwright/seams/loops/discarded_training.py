"""What follows a training loop: whether its result is discarded (a learning rate range test, a warm-up on a copy, a trial
on one batch), and what is trained again."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Sequence
from types import CellType, CodeType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any

from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.found_loops import (
    TRAINING_CALLS,
    Loop,
    called_in,
    has_attributes,
    own_nodes,
    reached,
    resolve,
)
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import code_node

_EVALUATING = frozenset(["eval", "no_grad", "inference_mode"])


def is_passing(loop: Loop, callers: Sequence[FrameType], seen: Seen) -> bool:
    """Whether the result of a loop's training is discarded afterwards and the script trains again.

    Args:
        callers: the user's frames that led to the loop's, the nearest first.
        seen: what the script built; a copied model was not built.
    """
    trained = _models_in(loop)
    if not trained or not any(_trains([s], f) for f, s in _following(loop, callers)):
        return False
    own = [s for frame, s in _following(loop, callers) if frame is loop.frame]
    if _are_unused_copies(trained, own, seen) or _are_restored(trained, own, loop):
        return True
    return not _evaluates(loop) and not any(_is_used_later(m, loop, callers) for m in trained.values())


def names_trained_later(loop: Loop, callers: Sequence[FrameType]) -> frozenset[str]:
    """The names in later statements that train again: a loader among them is not for evaluation."""
    later = [s for f, s in _following(loop, callers) if _trains([s], f)]
    return frozenset(n.id for s in later for n in ast.walk(s) if isinstance(n, ast.Name))


def _models_in(loop: Loop) -> dict[str, Any]:
    """The models named in a loop's body, or in what it calls, under the names in the loop's own function."""
    named = {n.id for n in ast.walk(loop.node) if isinstance(n, ast.Name)}
    return {n: v for n in named if _is_model(v := loop.scope.get(n))}


def _is_model(value: Any) -> bool:
    return (
        not isinstance(value, type)
        and has_attributes(value, "named_parameters")
        and any(True for _ in value.named_parameters())
    )


def _following(loop: Loop, callers: Sequence[FrameType]) -> Iterator[tuple[FrameType, ast.stmt]]:
    """The statements that start after a loop's end in its function, and after the call in its callers."""
    last = loop.node.end_lineno or loop.node.lineno
    for frame in (loop.frame, *callers):
        owner = code_node(frame.f_code)
        for node in own_nodes(owner) if owner is not None else ():
            if isinstance(node, ast.stmt) and node.lineno > (last if frame is loop.frame else frame.f_lineno):
                yield frame, node


def _trains(statements: Sequence[ast.stmt], frame: FrameType) -> bool:
    return bool(called_in(statements, {**frame.f_globals, **frame.f_locals}, TRAINING_CALLS))


def _are_unused_copies(trained: dict[str, Any], after: Sequence[ast.stmt], seen: Seen) -> bool:
    """Whether the models are copies of other models, and no later line of the function names them."""
    later = {n.id for s in after if not isinstance(s, ast.Delete) for n in ast.walk(s) if isinstance(n, ast.Name)}
    built = [_shapes(m) for m in seen.modules]
    return all(n not in later and m not in seen.modules and _shapes(m) in built for n, m in trained.items())


def _shapes(model: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, tuple(p.shape)) for name, p in model.named_parameters()]


def _is_used_later(model: Any, loop: Loop, callers: Sequence[FrameType]) -> bool:
    """Whether a later statement reads one of a model's names, before it gives the name to something else.

    A model that an object or a container holds, that a function reads by its name, or that the loop's function was given,
    counts as used.
    """
    spaces = [space for f in (loop.frame, *callers) for space in (f.f_globals, f.f_locals)]
    if _is_held(model, spaces):
        return True
    for frame in (loop.frame, *callers):
        names = {n for n, v in {**frame.f_globals, **frame.f_locals}.items() if v is model}
        if names and (frame is not loop.frame or any(names & _names_in(v) for s in spaces for v in s.values())):
            return True
        for statement in (s for f, s in _following(loop, callers) if f is frame):
            read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if names & read:
                return True
            bound = statement.targets if isinstance(statement, ast.Assign) else []
            names -= {n.id for t in bound for n in ast.walk(t) if isinstance(n, ast.Name)}
    return False


def _is_held(model: Any, spaces: Sequence[dict[str, Any]]) -> bool:
    """Whether an object or a container has the model, other than running code and its names."""
    named = [space for space in spaces if any(v is model for v in space.values())]
    there = {id(space) for space in named}
    for holder in gc.get_referrers(model):
        if isinstance(holder, dict) and (id(holder) in there or _is_of_names(holder, named)):
            continue
        if not isinstance(holder, (MethodType, CellType, FrameType, GeneratorType)):
            return True
    return False


def _is_of_names(holder: dict[Any, Any], spaces: Sequence[dict[str, Any]]) -> bool:
    """Whether a dictionary's keys are names of the script with their values: a copy of a part of its names."""
    return all(any(k in space and space[k] is v for space in spaces) for k, v in holder.items())


def _names_in(value: Any) -> set[str]:
    """The names that a user's function, or a class's methods, read from outside, those of functions inside included."""
    functions = [value, *(vars(value).values() if isinstance(value, type) else ())]
    codes = [f.__code__ for f in functions if isinstance(f, FunctionType) and is_users(f.__code__.co_filename)]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names |= {*code.co_names, *code.co_freevars}
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
    return names


def _evaluates(loop: Loop) -> bool:
    """Whether a loop measures what it trains: then the numbers that it prints are its result."""
    return bool(called_in(loop.node.body, loop.scope, _EVALUATING))


def _are_restored(trained: dict[str, Any], after: Sequence[ast.stmt], loop: Loop) -> bool:
    """Whether each model's earlier state is restored after the loop."""
    restored = []
    for node, scope in reached(after, loop.scope, frozenset(["load_state_dict"])):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "load_state_dict" and node.args:
            kept = resolve(node.args[0], scope)
            if isinstance(kept, dict) and kept and isinstance(node.func, ast.Attribute):
                restored.append(resolve(node.func.value, scope))
    return all(any(m is r for r in restored) for m in trained.values())
