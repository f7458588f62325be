"""How many rounds a loop has, as far as its source tells."""

from __future__ import annotations

import ast
import copy
from typing import Any

from trainwright.seams.loops.found_loops import Scope, Statement, called_name, resolve, users_functions
from trainwright.seams.source.written import code_node

# What goes over its argument in another way than item by item; other calls hand out each: progress bars, loggers,
# `enumerate`.
_REPEATING = frozenset(["cycle", "repeat", "infinite", "endless", "batched", "pairwise", "product", "combinations"])
# What is cut into pieces of a size, or into so many; and what has as many items as its only argument says.
_CUTS = frozenset(["split", "chunk", "array_split", "tensor_split"])
_COUNTED = frozenset(["randperm", "permutation", "arange"])


def count_of(node: Statement, scope: Scope) -> int | None:
    """How often a loop goes round, where what it goes over has a length; None where it does not."""
    return _length(node.iter, scope) if isinstance(node, ast.For) else None


def _length(node: ast.expr, scope: Scope) -> int | None:
    """How many items an expression goes over."""
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        try:
            return len(_value(node, scope))
        except Exception:  # something of the user's that has no length
            return None
    name, given = called_name(node), node.args
    if name in ("range", "trange"):
        return _range_length(node, scope)
    if name == "zip" and given:
        lengths = [_length(a, scope) for a in given]
        known = [n for n in lengths if n is not None]
        return min(known) if known else None
    if name == "chain" and given:
        lengths = [_length(a, scope) for a in given]
        return None if None in lengths else sum(n for n in lengths if n is not None)
    if name == "islice" and len(given) == 2:
        most, whole = _number(given[1], scope), _length(given[0], scope)
        return most if whole is None or most is None else min(most, whole)
    if name in _CUTS and given:
        return _pieces(node, scope)
    if name in _COUNTED and len(given) == 1:
        count = _number(given[0], scope)
        return count if count is not None else _length(given[0], scope)
    if given and not _repeats(node, scope):
        return _length(given[-1] if name == "map" else given[0], scope)
    return None


def _pieces(call: ast.Call, scope: Scope) -> int | None:
    """Into how many pieces a call of torch's or NumPy's cuts a tensor: `rows.split(32)`, `np.array_split(rows, 9)`."""
    whole, by = (call.func.value if isinstance(call.func, ast.Attribute) else None), call.args[0]
    if len(call.args) > 1:  # torch.split(rows, 32), np.split(rows, 9)
        whole, by = call.args[:2]
    number = _number(by, scope)
    if number is None or number < 1 or whole is None:
        return None
    of_numpy = (
        isinstance(call.func, ast.Attribute) and getattr(resolve(call.func.value, scope), "__name__", "") == "numpy"
    )
    if called_name(call) != "split" or of_numpy:
        return number
    length = _length(whole, scope)
    return None if length is None else -(-length // number)


def _repeats(call: ast.Call, scope: Scope) -> bool:
    """Whether a call may go over what it is given more than once, or without an end."""
    if called_name(call) in _REPEATING:
        return True
    bodies = [code_node(f.__code__) for f in users_functions(resolve(call.func, scope))]
    return any(isinstance(n, ast.While) for body in bodies if body is not None for n in ast.walk(body))


def _range_length(node: ast.Call, scope: Scope) -> int | None:
    bounds = [_number(a, scope) for a in node.args]
    try:
        return len(range(*(b for b in bounds if b is not None))) if None not in bounds else None
    except (TypeError, ValueError):
        return None


def _number(node: ast.expr, scope: Scope) -> int | None:
    """What an expression is worth, where it is a whole number."""
    try:
        value = _value(node, scope)
    except Exception:  # a name that is not bound, something of the user's that raises
        return None
    return value if isinstance(value, int) else None


def _value(node: ast.expr, scope: Scope) -> Any:
    expression = ast.Expression(copy.deepcopy(node))
    return eval(compile(ast.fix_missing_locations(expression), "<length>", "eval"), dict(scope))
