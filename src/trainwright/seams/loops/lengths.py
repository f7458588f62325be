"""The number of rounds of a loop, as far as its source shows."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from trainwright.seams.loops.found_loops import Scope, Statement, called_name, resolve, users_functions
from trainwright.seams.source.written import code_node

# Library functions that yield each item of their first argument; progress bars have such words in their names.
_HANDING_ON = frozenset(["enumerate", "iter", "list", "tuple", "reversed", "sorted", "prepare", "setup_dataloaders"])
_RANGES = frozenset(["range", "trange", "count"])
_BARS = ("tqdm", "trange", "progress", "track", "bar", "alive_it")
# Functions that split into pieces of a size, or into a number of them; and functions whose only argument is a length.
_CUTS = frozenset(["split", "chunk", "array_split", "tensor_split"])
_COUNTED = frozenset(["randperm", "permutation", "arange"])


def count_of(node: Statement, scope: Scope) -> int | None:
    """A loop's number of rounds, if what it iterates over has a length; None if it is not certain."""
    return _length(node.iter, scope) if isinstance(node, ast.For) and not _ends_at_count(node) else None


def _ends_at_count(loop: ast.For) -> bool:
    """Whether a loop counts something and is left at a number of it: `if step >= most: break`.

    A loop that is left when nothing improves any more is planned to its end.
    """
    counters = {_target(n) for n in _unconditional(loop.body) if _counts(n)}
    if isinstance(loop.iter, ast.Call) and called_name(loop.iter) in ("enumerate", *_RANGES):
        counters.add(ast.unparse(loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target))
    stored = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and any(isinstance(n, (ast.Break, ast.Return)) for n in node.body):
            read = {ast.unparse(n) for n in ast.walk(node.test) if isinstance(n, (ast.Name, ast.Attribute))}
            if counters & read and not (read - counters) & stored:
                return True
    return False


def _counts(statement: ast.stmt) -> bool:
    """`step += 1`, `seen += len(rows)`"""
    if not isinstance(statement, ast.AugAssign):
        return False
    by = statement.value
    return isinstance(by, ast.Constant) or (isinstance(by, ast.Call) and called_name(by) in ("len", "numel", "size"))


def _target(statement: ast.stmt) -> str:
    return ast.unparse(statement.target) if isinstance(statement, ast.AugAssign) else ""


def _unconditional(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that every round of a loop, or of the loops in it, comes to."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.For, ast.While, ast.With)):
            yield from _unconditional(statement.body)


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
    if name == "map" and given:
        return _length(given[-1], scope)
    return _length(given[0], scope) if given and _hands_on(node, scope) else None


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


def _hands_on(call: ast.Call, scope: Scope) -> bool:
    """Whether a call certainly yields each item of its first argument once, as a progress bar or a logger does."""
    functions = users_functions(resolve(call.func, scope))
    if not functions:
        return _is_bar(called_name(call))
    bodies = [code_node(f.__code__) for f in functions]
    return all(isinstance(body, ast.FunctionDef) and _yields_each(body) for body in bodies)


def _is_bar(name: str) -> bool:
    return name in _HANDING_ON or any(word in name.lower() for word in _BARS)


def _yields_each(function: ast.FunctionDef) -> bool:
    """Whether a generator yields from its first parameter, or once in every round of its only loop over that."""
    yields = [n for n in ast.walk(function) if isinstance(n, (ast.Yield, ast.YieldFrom))]
    first = next((a.arg for a in function.args.args if a.arg != "self"), "")
    if len(yields) != 1:
        return False
    if isinstance(yields[0], ast.YieldFrom):
        return _is_statement(yields[0], function.body) and _iterated(yields[0].value) == first
    over = [n for n in function.body if isinstance(n, ast.For) and _is_statement(yields[0], n.body)]
    return any(_iterated(loop.iter) == first and not _ends_at_count(loop) for loop in over)


def _iterated(node: ast.expr) -> str:
    """The name that is iterated over, perhaps through a progress bar."""
    while isinstance(node, ast.Call) and node.args and _is_bar(called_name(node)):
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else ""


def _is_statement(expression: ast.expr, body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Expr) and n.value is expression for n in body)


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
