"""Finds the loops of the user's code in running frames, and what code calls."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType
from typing import Any

from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import code_node, last_name

# Maximum depth to follow calls of helper functions.
CALL_DEPTH = 4

Scope = Mapping[str, Any]
Statement = ast.For | ast.While


@dataclass(frozen=True)
class Loop:
    """A `for` or `while` statement that a frame is running."""

    frame: FrameType
    node: Statement
    around: tuple[Statement, ...] = ()
    """The loops around it in the same function, the innermost first."""

    @property
    def line(self) -> int:
        """The line of its header."""
        return self.node.lineno

    @property
    def scope(self) -> dict[str, Any]:
        """The names that its code can use."""
        return {**self.frame.f_globals, **self.frame.f_locals}


def loops_at(frame: FrameType, line: int) -> list[Loop]:
    """The loops of a frame's code around a line, the innermost first; a loop's header belongs to it."""
    owner = code_node(frame.f_code)
    if owner is None:
        return []
    nodes = [loop for node in own_nodes(owner) for loop in _as_loops(node)]
    around = [node for node in nodes if _spans(node, line)]
    # Those of one comprehension begin on the same line: the one that holds the other is longer.
    around.sort(key=lambda node: (node.lineno, -sum(1 for _ in ast.walk(node))), reverse=True)
    return [Loop(frame, node, tuple(around[i + 1 :])) for i, node in enumerate(around)]


def _as_loops(node: ast.AST) -> list[Statement]:
    """A loop itself; for a comprehension, the equivalent loops; none for other code."""
    if isinstance(node, (ast.For, ast.While)):
        return [node]
    if not isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return []
    body: list[ast.stmt] = [ast.copy_location(ast.Expr(node.elt), node.elt)]
    loops: list[Statement] = []
    for over in reversed(node.generators):
        if over.ifs:
            test = over.ifs[0] if len(over.ifs) == 1 else ast.BoolOp(ast.And(), over.ifs)
            body = [ast.copy_location(ast.If(test=test, body=body, orelse=[]), node.elt)]
        loop = ast.copy_location(ast.For(target=over.target, iter=over.iter, body=body, orelse=[]), node)
        loops.append(loop)
        body = [loop]
    return loops


def _spans(node: Statement, line: int) -> bool:
    last = max(node.body[-1].end_lineno or 0, node.lineno)
    if isinstance(node, ast.For):
        last = max(last, node.iter.end_lineno or 0)
    return node.lineno <= line <= last


def own_nodes(owner: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module's or function's own code, excluding nested functions and classes."""
    for node in ast.iter_child_nodes(owner):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            yield from own_nodes(node)


def is_users_object(value: Any) -> bool:
    """Whether a value is an instance of a user-defined class."""
    module = sys.modules.get(type(value).__module__)
    return hasattr(value, "__dict__") and is_users(getattr(module, "__file__", None) or "<built-in>")


def is_optimizer(value: Any) -> bool:
    """Whether a value is an optimizer, or a wrapper that exposes its groups."""
    return has_attributes(value, "param_groups", "step")


def has_attributes(value: Any, *names: str) -> bool:
    """Whether a user's object has all of these; one whose `__getattr__` raises anything else has none of them, nor what
    stands in for a tracker, which has every attribute."""
    try:
        return not isinstance(value, Nothing) and all(hasattr(value, name) for name in names)
    except Exception:  # the user's, which has no meaning for the script: nothing of it asked
        return False


def walk_reached(
    body: Sequence[ast.AST], scope: Scope, names: frozenset[str] = frozenset(), depth: int = 0
) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes of code and of the user's functions that it calls, each with the names available there.

    Args:
        names: calls of functions with these names are not followed.
    """
    for statement in body:
        for node in ast.walk(statement):
            yield node, scope
            if not isinstance(node, ast.Call) or called_name(node) in names or depth == CALL_DEPTH:
                continue
            for function in users_functions(resolve(node.func, scope)):
                inner = code_node(function.__code__)
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    inside = {**function.__globals__, **closure(function), **_given(node, inner, scope)}
                    yield from walk_reached(inner.body, inside, names, depth + 1)


def _given(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> dict[str, Any]:
    """The arguments of a call under the function's parameter names, as far as they are known."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, Any] = {}
    if names and isinstance(call.func, ast.Attribute):
        owner = resolve(call.func.value, scope)
        if owner is not None and type(owner).__name__ != "module":
            found[names[0]], names = owner, names[1:]
    found |= {n: resolve(a, scope) for n, a in zip(names, call.args)}
    found |= {k.arg: resolve(k.value, scope) for k in call.keywords if k.arg}
    return {n: v for n, v in found.items() if v is not None}


def called_name(call: ast.Call) -> str:
    return last_name(call.func)


def closure(function: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that a function can use."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def users_functions(value: Any) -> list[FunctionType]:
    """The function behind a value, if the user wrote it."""
    if isinstance(value, MethodType):
        value = value.__func__
    value = getattr(value, "__wrapped__", value)
    return [value] if isinstance(value, FunctionType) and is_users(value.__code__.co_filename) else []


def resolve(node: ast.AST, scope: Scope) -> Any:
    """The value of a name or attribute chain, read without running properties; None if unknown."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, scope)
        method = getattr(type(owner), node.attr, None)
        return method if isinstance(method, FunctionType) else getattr(owner, "__dict__", {}).get(node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner, key = resolve(node.value, scope), node.slice.value
        with contextlib.suppress(KeyError, IndexError, TypeError):
            return owner[key] if type(owner) in (dict, list, tuple) else None
    return None
