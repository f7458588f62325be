"""Finds later calls that train, after the one that was reached, from the source and the script's current names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType
from typing import Any

from trainwright.seams.source.written import call_end, call_node, look_up, syntax_tree

# The packages whose class of this name is the model that `fit` trains.
_PACKAGES, _MODEL = ("keras", "tf_keras"), "Model"


def fit_lines(frame: FrameType) -> list[int]:
    """Lines after a frame's current `fit` that call `.fit(…)` on a current or future Keras model."""
    file, reached = frame.f_code.co_filename, frame.f_lineno
    first, tree = call_node(file, reached, "fit", end=call_end(frame)), syntax_tree(file)
    if tree is None or first is None or not isinstance(first.func, ast.Attribute):
        return []
    receivers = _Receivers(tree, {**frame.f_globals, **frame.f_locals}, first.func.value)
    return sorted(
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "fit"
        and n.lineno > (first.end_lineno or reached)
        and receivers.is_model(n.func.value)
    )


class _Receivers:
    """Which expressions of a script are Keras models, according to its names and assignments.

    Args:
        trained: the expression whose `fit` was reached.
    """

    def __init__(self, tree: ast.Module, scope: Mapping[str, Any], trained: ast.expr) -> None:
        self._scope, self._trained = dict(scope), ast.unparse(trained)
        self._made = [(t, v) for t, v in _assigned(tree) if isinstance(v, ast.Call)]
        self._makers = {
            ast.unparse(call.func)
            for target, call in self._made
            if ast.unparse(target) == self._trained or _is_model(look_up(target, self._scope))
        }

    def is_model(self, receiver: ast.expr) -> bool:
        """Whether it is the trained model, is bound to a model, or is unbound and will be assigned one."""
        if ast.unparse(receiver) == self._trained:
            return True
        value = look_up(receiver, self._scope)
        if value is not None:
            return _is_model(value)
        calls = [call for target, call in self._made if ast.unparse(target) == ast.unparse(receiver)]
        return any(map(self._makes_model, calls))

    def _makes_model(self, call: ast.Call) -> bool:
        """Whether it calls a model class, a Keras function, or something that has made a model before."""
        if ast.unparse(call.func) in self._makers:
            return True
        made_by = look_up(call.func, self._scope)
        if isinstance(made_by, type):
            return _is_model_class(made_by)
        return isinstance(made_by, FunctionType) and made_by.__module__.partition(".")[0] in _PACKAGES


def _assigned(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Assignment targets and values, member by member if a tuple is assigned to a tuple."""
    assigns = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    for target, value in ((t, n.value) for n in assigns for t in n.targets):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts)
        else:
            yield target, value


def _is_model(value: Any) -> bool:
    return _is_model_class(type(value))


def _is_model_class(kind: type) -> bool:
    return any(k.__name__ == _MODEL and k.__module__.partition(".")[0] in _PACKAGES for k in kind.__mro__)
