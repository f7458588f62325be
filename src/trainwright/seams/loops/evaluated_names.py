"""The script's arrays that a loop's code passes to the trained model to evaluate it, found in the code without running it.

An evaluation of a few whole arrays often comes once in many updates, or after the last one, so a look at the first updates
does not show it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.loops.found_loops import Loop, own_nodes
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import code_node, last_name

_QUIET = ("no_grad", "inference_mode")
# Calls that keep the rows of what they are given, or of what they are methods of.
_OF_ARGUMENT = ("from_numpy", "as_tensor", "tensor", "FloatTensor", "LongTensor")
_OF_OWNER = ("to", "float", "double", "long", "cpu", "cuda")


@dataclass(frozen=True)
class Evaluated:
    """Rows that are passed to the model in an evaluation."""

    inputs: Any
    labels: tuple[Any, ...]
    """Arrays of one value for each of these rows that the same code reads, the nearest first."""
    names: frozenset[str]
    """The names that the code has for the inputs."""
    where: Place


def evaluated_names(loop: Loop, callers: Sequence[FrameType], models: Sequence[Any]) -> Iterator[Evaluated]:
    """The rows passed to one of the models where no gradients are taken, in the loop's function and those around it.

    Args:
        models: those that the loop trains.
    """
    changing = _stored([loop.node, *loop.around])
    for frame in (loop.frame, *callers):
        owner = code_node(frame.f_code)
        scope = {**frame.f_globals, **frame.f_locals}
        own = _Code(owner, {k: v for k, v in scope.items() if k not in changing}, frame.f_code.co_filename)
        yield from _in(own, models)
        for call in own.calls():
            if (called := _function_called(call, own)) is not None:
                yield from _in(called, models)


@dataclass(frozen=True)
class _Code:
    """A function or a script, with the values of its names that do not change while it runs."""

    node: Any
    scope: Mapping[str, Any]
    file: str

    def nodes(self) -> Iterator[ast.AST]:
        return own_nodes(self.node) if self.node is not None else iter(())

    def calls(self) -> list[ast.Call]:
        return [n for n in self.nodes() if isinstance(n, ast.Call)]


def _in(code: _Code, models: Sequence[Any]) -> Iterator[Evaluated]:
    for call in code.calls():
        if len(call.args) != 1 or call.keywords or not any(_held(call.func, code.scope) is m for m in models):
            continue
        inputs = _value(call.args[0], code.scope)
        if inputs is None or not _is_quiet(call, code):
            continue
        labels = _beside(inputs, call.lineno, code)
        if labels:
            written = {n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)}
            held = {n for n, v in code.scope.items() if v is inputs}
            yield Evaluated(inputs, labels, frozenset(written | held), Place(show(code.file), call.lineno))


def _function_called(call: ast.Call, code: _Code) -> _Code | None:
    """The user's function that is called, with the values of its arguments; None for others."""
    function = _held(call.func, code.scope)
    plain = function.__func__ if isinstance(function, MethodType) else function
    plain = inspect.unwrap(plain) if isinstance(plain, FunctionType) else None
    if not isinstance(plain, FunctionType) or not is_users(plain.__code__.co_filename):
        return None
    names = list(plain.__code__.co_varnames[: plain.__code__.co_argcount])
    given: dict[str, Any] = {names.pop(0): function.__self__} if isinstance(function, MethodType) and names else {}
    known = {**plain.__globals__, **dict.fromkeys(plain.__code__.co_varnames)}
    passed = [*zip(names, call.args), *((k.arg, k.value) for k in call.keywords if k.arg)]
    given |= {name: _argument(value, code.scope) for name, value in passed}
    return _Code(code_node(plain.__code__), known | given, plain.__code__.co_filename)


def _argument(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    found = _value(node, scope)
    return _held(node, scope) if found is None else found


def _held(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """What a name or an object's own attribute holds; nothing is called, properties included."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if not isinstance(node, ast.Attribute) or (owner := _held(node.value, scope)) is None:
        return None
    method = getattr(type(owner), node.attr, None)
    own = getattr(owner, "__dict__", {}).get(node.attr)
    return MethodType(method, owner) if own is None and isinstance(method, FunctionType) else own


def _value(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The array that an expression stands for, or that it takes rows of; None if it is no array."""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in _OF_ARGUMENT and node.args:
            return _value(node.args[0], scope)
        return _value(node.func.value, scope) if name in _OF_OWNER and isinstance(node.func, ast.Attribute) else None
    if isinstance(node, ast.Subscript):
        whole = _value(node.value, scope)
        return None if whole is None else _rows(whole, node.slice, scope)
    found = _held(node, scope)
    return found if _is_array(found) else None


def _rows(whole: Any, index: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The rows that a slice of known numbers or an array of indices takes; all of them if the numbers are not known."""
    if isinstance(index, ast.Slice):
        parts = [_number(part, scope) for part in (index.lower, index.upper, index.step)]
        given = [part for part in (index.lower, index.upper, index.step) if part is not None]
        return whole[slice(*parts)] if sum(p is not None for p in parts) == len(given) else whole
    chosen = _value(index, scope)
    return whole[chosen] if chosen is not None and _are_rows_of(whole, chosen) else None


def _are_rows_of(whole: Any, chosen: Any) -> bool:
    """Whether an array holds numbers of rows, or has a mark for each; its name may mean rows of an earlier array."""
    if len(chosen.shape) != 1 or not len(chosen):
        return False
    if "bool" in str(chosen.dtype):
        return len(chosen) == len(whole)
    known = str(chosen.dtype).rpartition(".")[2] in ("int32", "int64")
    return known and -len(whole) <= int(chosen.min()) and int(chosen.max()) < len(whole)


def _number(node: ast.expr | None, scope: Mapping[str, Any]) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = _number(node.operand, scope)
        return -found if found is not None else None
    value = node.value if isinstance(node, ast.Constant) else None
    value = _held(node, scope) if isinstance(node, (ast.Name, ast.Attribute)) else value
    return value if type(value) is int else None


def _is_array(value: Any) -> bool:
    kind = type(value)
    named = (kind.__module__.partition(".")[0], kind.__name__) in (("torch", "Tensor"), ("numpy", "ndarray"))
    return named and len(value.shape) > 0


def _beside(inputs: Any, line: int, code: _Code) -> tuple[Any, ...]:
    """Arrays with one value for each row of the inputs, in the order of their lines' distance."""
    found: list[tuple[int, Any]] = []
    for node in code.nodes():
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            value = _value(node, code.scope)
            if value is not None and len(value) == len(inputs) and len(value.shape) <= 2:
                if len(value.shape) == 1 or value.shape[1] == 1:
                    found.append((abs(node.lineno - line), value))
    return tuple(value for _, value in sorted(found, key=lambda pair: pair[0]) if value is not inputs)


def _is_quiet(call: ast.Call, code: _Code) -> bool:
    """Whether no gradients are taken there, or the model was put into evaluation mode last."""
    decorated = getattr(code.node, "decorator_list", [])
    around = [n for n in code.nodes() if isinstance(n, ast.With) and n.lineno <= call.lineno <= (n.end_lineno or 0)]
    makers = [*decorated, *(item.context_expr for n in around for item in n.items)]
    if any(last_name(m.func if isinstance(m, ast.Call) else m) in _QUIET for m in makers):
        return True
    modes = [c for c in code.calls() if last_name(c.func) in ("train", "eval") and c.lineno <= call.lineno]
    return bool(modes) and last_name(max(modes, key=lambda c: c.lineno).func) == "eval"


def _stored(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that statements assign."""
    names = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Store))
