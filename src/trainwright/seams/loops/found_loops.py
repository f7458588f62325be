"""Finds the loops of the user's code in running frames, and what their bodies call."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType
from typing import Any

from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import code_node

# Calls that only a training step makes.
TRAINING_CALLS = frozenset(["backward", "manual_backward"])
_GRADIENT_CALLS = frozenset(["grad"])
_IN_PLACE_CALLS = frozenset(["sub_", "add_", "copy_", "_foreach_sub_", "_foreach_add_"])
_STEPPING_CALLS = frozenset(["step"])
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


def callers(frame: FrameType) -> Iterator[FrameType]:
    """The frames of the script that led to this one, the nearest first."""
    caller = frame.f_back if frame.f_code.co_name != "<module>" else None
    while caller is not None:
        if is_users(caller.f_code.co_filename):
            yield caller
        if caller.f_code.co_name == "<module>":
            return  # frames that run the script are not part of it
        caller = caller.f_back


def loops_at(frame: FrameType, line: int) -> list[Loop]:
    """The loops of a frame's code around a line, the innermost first; a loop's header belongs to it."""
    owner = code_node(frame.f_code)
    if owner is None:
        return []
    nodes = [loop for node in own_nodes(owner) for loop in _as_loops(node)]
    around = [node for node in nodes if _spans(node, line)]
    around.sort(key=lambda node: (node.lineno, -_depth(node)), reverse=True)
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


def _depth(node: Statement) -> int:
    """How many loops a loop contains, since those of one comprehension begin on the same line."""
    return sum(isinstance(n, (ast.For, ast.While)) for n in ast.walk(node))


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


def hands_out_data(loop: Loop) -> bool:
    """Whether the loop's variables, or what it iterates over, are data."""
    if not isinstance(loop.node, ast.For):
        return False
    names = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name)}
    held = [loop.frame.f_locals.get(n, loop.frame.f_globals.get(n)) for n in names]
    if any(_is_data(v) for v in held):
        return True
    used = {n.id for n in ast.walk(loop.node.iter) if isinstance(n, ast.Name)}
    reached = [v for n in used if (v := loop.scope.get(n)) is not None]
    reached += [v for o in reached for v in getattr(o, "__dict__", {}).values() if not isinstance(o, type)]
    return any(_is_loader(v) for v in reached)


def _is_data(value: Any, depth: int = 0) -> bool:
    if has_attributes(value, "shape", "dtype"):
        return len(value.shape) > 1 or (len(value.shape) == 1 and "int" not in str(value.dtype))  # otherwise indices
    if isinstance(value, Mapping) and depth < 2:
        return any(_is_data(v, depth + 1) for v in value.values())
    if isinstance(value, (list, tuple)) and depth < 2:
        return any(_is_data(v, depth + 1) for v in value[:8])
    return False


def _is_loader(value: Any) -> bool:
    return any(k.__name__ == "DataLoader" and k.__module__.startswith("torch.") for k in type(value).__mro__)


def trains(loop: Loop) -> bool:
    """Whether a loop's body, or user code that it calls, calls backward or steps an optimizer."""
    if called_in(loop.node.body, loop.scope, TRAINING_CALLS):
        return True
    stepping = called_in(loop.node.body, loop.scope, _STEPPING_CALLS)
    return bool(stepping) and any(is_optimizer(v) for v in _reachable(loop.scope))


def trains_by_hand(loop: Loop) -> bool:
    """Whether a loop's body calls torch.autograd.grad and changes tensors in place, or means to."""
    body, scope = loop.node.body, loop.scope
    if not called_in(body, scope, _GRADIENT_CALLS):
        return False
    return bool(called_in(body, scope, _IN_PLACE_CALLS)) or any(_subtracts(node) for node, _ in reached(body, scope))


def _subtracts(node: ast.AST) -> bool:
    """Whether a statement subtracts from a variable: `p -= g`, or `p = p - g`, which does not modify the tensor."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Sub)
    if not isinstance(node, ast.Assign) or not isinstance(value := node.value, ast.BinOp):
        return False
    taken = ast.unparse(value.left) if isinstance(value.op, ast.Sub) else ""
    return any(taken in (name := ast.unparse(t), f"{name}.data") for t in node.targets)


def reads_gradients_alone(loop: Loop) -> bool:
    """Whether a loop's body reads gradients itself and changes nothing by them: an attack on inputs, the importance of weights."""
    body, scope = loop.node.body, loop.scope
    if steps_optimizer(body, scope) or called_in(body, scope, _IN_PLACE_CALLS):
        return False
    nodes = [node for node, _ in reached(body, scope)]
    reads = any(isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in nodes)
    return reads and not any(_subtracts(node) for node in nodes)


def _reachable(scope: Scope) -> Iterator[Any]:
    for value in scope.values():
        yield value
        if not isinstance(value, type) and is_users_object(value):
            yield from vars(value).values()


def is_users_object(value: Any) -> bool:
    """Whether a value is an instance of a user-defined class."""
    module = sys.modules.get(type(value).__module__)
    return hasattr(value, "__dict__") and is_users(getattr(module, "__file__", None) or "<built-in>")


def is_optimizer(value: Any) -> bool:
    """Whether a value is an optimizer, or a wrapper that exposes its groups."""
    return has_attributes(value, "param_groups", "step")


def has_attributes(value: Any, *names: str) -> bool:
    """Whether a user's object has all of these; one whose `__getattr__` raises anything else has none of them."""
    try:
        return all(hasattr(value, name) for name in names)
    except Exception:  # the user's, which has no meaning for the script: nothing of it asked
        return False


def called_in(body: Sequence[ast.AST], scope: Scope, names: frozenset[str]) -> set[str]:
    """The names among these that code calls, as methods or functions, directly or through the user's functions."""
    return {called_name(n) for n, _ in reached(body, scope, names) if isinstance(n, ast.Call)} & names


def steps_optimizer(body: Sequence[ast.AST], scope: Scope) -> bool:
    """Whether code steps an optimizer: directly, through the user's functions, or by passing it to another's step.

    `scaler.step(optimizer)` counts; `scheduler.step()`, `environment.step(action)` and `profiler.step()` do not.
    """
    calls = ((n, inside) for n, inside in reached(body, scope) if isinstance(n, ast.Call))
    return any(called_name(call) == "step" and _is_update(call, inside) for call, inside in calls)


def _is_update(call: ast.Call, scope: Scope) -> bool:
    if not isinstance(call.func, ast.Attribute) or users_functions(resolve(call.func, scope)):
        return False  # the code of a user's own method is examined itself
    owner = resolve(call.func.value, scope)
    given = [resolve(a, scope) for a in call.args]
    if is_optimizer(owner) or any(is_optimizer(v) for v in given):
        return True
    return owner is None and "opt" in ast.unparse(call).lower()


def reached(
    body: Sequence[ast.AST],
    scope: Scope,
    names: frozenset[str] = frozenset(),
    depth: int = 0,
    *,
    objects: bool = False,
) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes of code and of the user's functions that it calls, each with the names available there.

    Args:
        names: calls of functions with these names are not followed.
        objects: calls of the user's objects are followed, too.
    """
    for statement in body:
        for node in ast.walk(statement):
            yield node, scope
            if not isinstance(node, ast.Call) or called_name(node) in names or depth == CALL_DEPTH:
                continue
            value = resolve(node.func, scope)
            functions, called = users_functions(value), None
            if objects and not functions and not isinstance(value, type):
                functions, called = users_functions(_call_of(value)), value
            for function in functions:
                inner = code_node(function.__code__)
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    inside = {**function.__globals__, **closure(function), **_given(node, inner, scope, called)}
                    yield from reached(inner.body, inside, names, depth + 1, objects=objects)


def _call_of(value: Any) -> Any:
    """The function that a call of an object runs."""
    return next((vars(k)["__call__"] for k in type(value).__mro__ if "__call__" in vars(k)), None)


def _given(
    call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, called: Any = None
) -> dict[str, Any]:
    """The arguments of a call under the function's parameter names, as far as they are known.

    Args:
        called: the object that is called, if it is not the function itself.
    """
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, Any] = {}
    if names and (called is not None or isinstance(call.func, ast.Attribute)):
        owner = resolve(call.func.value, scope) if called is None else called  # type: ignore[attr-defined]
        if owner is not None and type(owner).__name__ != "module":
            found[names[0]], names = owner, names[1:]
    found |= {n: resolve(a, scope) for n, a in zip(names, call.args)}
    found |= {k.arg: resolve(k.value, scope) for k in call.keywords if k.arg}
    return {n: v for n, v in found.items() if v is not None}


def called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


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
