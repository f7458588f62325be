"""An optimizer that was given no parameters: the model that the script took them from, and what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch import nn

from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.source.written import code_node, failed_lines, last_name, look_up
from trainwright.seams.torch.graph import find_assignment, members
from trainwright.stages import EmptyParameters, PlainList


def empty_parameters(error: BaseException, seen: BuiltObjects) -> dict[str, Any]:
    """Facts of the setup about the model in the call that raised; none if no model is found there."""
    for failed in reversed(failed_lines(error)):
        call, scope = failed.call(), failed.scope
        given = [*call.args, *(k.value for k in call.keywords)] if call is not None else []
        for value in given:
            source = _assigned_value(value, failed.frame.f_code, failed.line)
            model = _model_in(value, scope) or _model_in(source, scope)
            if model is not None:
                return _facts(model, ast.unparse(value), source, seen)
    return {}


def _model_in(expression: ast.expr | None, scope: dict[str, Any]) -> nn.Module | None:
    """The outermost model named in an expression, such as that of `model.parameters()`."""
    nodes = ast.walk(expression) if expression is not None else ()
    found = (look_up(n, scope) for n in nodes if isinstance(n, (ast.Name, ast.Attribute)))
    return next((m for m in found if isinstance(m, nn.Module)), None)


def _assigned_value(expression: ast.expr, code: Any, line: int) -> ast.expr | None:
    """The last expression that was assigned to a name before a line of the same function."""
    owner = code_node(code)
    if not isinstance(expression, ast.Name) or owner is None:
        return None
    assignments = [n for n in ast.walk(owner) if isinstance(n, ast.Assign) and n.lineno < line]
    found = [a for a in assignments if any(isinstance(t, ast.Name) and t.id == expression.id for t in a.targets)]
    return max(found, key=lambda a: a.lineno).value if found else None


def _facts(model: nn.Module, expression: str, source: ast.expr | None, seen: BuiltObjects) -> dict[str, Any]:
    parameters = list(model.parameters())
    return {
        "model_class": type(model).__name__,
        "parameters": sum(p.numel() for p in parameters),
        "trainable_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        "empty": EmptyParameters(
            expression=expression,
            is_iterator=isinstance(source, ast.Call) and last_name(source.func) == "parameters",
            lists=tuple(_unregistered(model, seen)),
            where=seen.modules.get(model),
        ),
    }


def _unregistered(model: nn.Module, seen: BuiltObjects) -> Iterator[PlainList]:
    """The lists, dictionaries and other objects in a model's attributes that hold layers and register none of them."""
    registered = {id(m) for m in model.modules()}
    for name, owner in model.named_modules():
        for attribute, value in vars(owner).items():
            if attribute.startswith("_"):
                continue
            inside = [m for m in members(value) if isinstance(m, nn.Module) and id(m) not in registered]
            numbers = sum(p.numel() for m in inside for p in m.parameters())
            if numbers:
                yield PlainList(
                    name=f"{name}.{attribute}".lstrip("."),
                    kind=type(value).__name__,
                    modules=len(inside),
                    parameters=numbers,
                    where=find_assignment(owner, attribute, made=True) or seen.modules.get(inside[0]),
                )
