"""The number of rounds of a loop, as far as its source shows."""

from __future__ import annotations

import ast
import copy
from typing import Any

from trainwright.seams.loops.found_loops import Scope, Statement, called_name, resolve, users_functions
from trainwright.seams.source.written import code_node

# Functions that do not iterate item by item; other calls yield each item of their argument: progress bars, loggers,
# `enumerate`.
_REPEATING = frozenset(["cycle", "repeat", "infinite", "endless", "batched", "pairwise", "product", "combinations"])
# Functions that split into pieces of a size, or into a number of them; and functions whose only argument is a length.
_CUTS = frozenset(["split", "chunk", "array_split", "tensor_split"])
_COUNTED = frozenset(["randperm", "permutation", "arange"])


def count_of(node: Statement, scope: Scope) -> int | None:
    """A loop's number of rounds, if what it iterates over has a length; otherwise None."""
    return _length(node.iter, scope) if isinstance(node, ast.For) else None


def _length(node: ast.expr, scope: Scope) -> int | None:
    """The number of items that an expression yields."""
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        try:
            return len(_value(node, scope))
        except Exception:  # a user's object without a length
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
    if name == "DataLoader" or any(k.arg == "batch_size" for k in node.keywords):
        return _batches(node, scope)
    if given and not _repeats(node, scope) and not _cuts_rows(node, scope):
        return _length(given[-1] if name == "map" else given[0], scope)
    return None


def _pieces(call: ast.Call, scope: Scope) -> int | None:
    """The number of pieces into which torch or NumPy splits a tensor: `rows.split(32)`, `np.array_split(rows, 9)`."""
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


def _batches(call: ast.Call, scope: Scope) -> int | None:
    """The number of batches: `DataLoader(rows, batch_size=32)`, `minibatches(x, y, batch_size=32)`."""
    named = {k.arg: k.value for k in call.keywords}
    if "batch_sampler" in named:
        return _length(named["batch_sampler"], scope)
    data = named.get("sampler") or (call.args[0] if call.args else named.get("dataset"))
    by = named.get("batch_size") or (call.args[1] if len(call.args) > 1 else ast.Constant(1))
    size, whole = _number(by, scope), _length(data, scope) if data is not None else None
    if not size or size < 1 or whole is None:
        return None
    dropped = "drop_last" in named and bool(_number(named["drop_last"], scope))
    return whole // size if dropped else -(-whole // size)


def _cuts_rows(call: ast.Call, scope: Scope) -> bool:
    """Whether a function of the user's is given an array of rows: it may yield any number of batches."""
    if not users_functions(resolve(call.func, scope)):
        return False
    try:
        return hasattr(_value(call.args[0], scope), "shape")
    except Exception:  # an unbound name, a user's object that raises
        return False


def _repeats(call: ast.Call, scope: Scope) -> bool:
    """Whether a call may iterate over its argument more than once, or endlessly."""
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
    """The value of an expression, if it is an integer."""
    try:
        value = _value(node, scope)
    except Exception:  # an unbound name, a user's object that raises
        return None
    return value if isinstance(value, int) else None


def _value(node: ast.expr, scope: Scope) -> Any:
    expression = ast.Expression(copy.deepcopy(node))
    return eval(compile(ast.fix_missing_locations(expression), "<length>", "eval"), dict(scope))
