"""The branches that a loop takes when a value is the best so far: `if loss < best: best = loss; …`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.seams.loops.found_loops import called_name, reached, resolve

_ORDERS = {ast.Lt: False, ast.LtE: False, ast.Gt: True, ast.GtE: True}
_STORED = (ast.Name, ast.Attribute, ast.Subscript)
_EXTREMES = ("max", "min", "maximum", "minimum")
# Calls that only look at their argument.
_LOOKING = frozenset(["print", "len", "type", "isinstance", "id", "repr", "str", "sorted", "list", "set", "keys"])
# Attributes and calls that give other tensors, on other devices or as arrays.
_COPYING = frozenset(["cpu", "cuda", "to", "numpy", "clone", "deepcopy"])


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """A comparison of a value with the best so far, and the statements that run if it is better."""

    test: ast.If
    comparison: ast.Compare
    value: ast.expr
    best: ast.expr
    greater: bool
    """A greater value counts as better."""
    branch: Sequence[ast.stmt]
    """What runs if the value is better."""
    scope: Mapping[str, Any]
    """The names that this code can use."""

    @property
    def line(self) -> int:
        """The line of the comparison."""
        return self.comparison.lineno

    @property
    def now(self) -> Any:
        """The best value so far, before the next comparison; None if unknown."""
        return resolve(self.best, self.scope)


def improvements(statements: Sequence[ast.AST], scope: Mapping[str, Any]) -> list[Improvement]:
    """The comparisons with a best value in statements and in the user's functions that they call."""
    found: dict[tuple[int, int, int], Improvement] = {}
    named: dict[str, ast.Compare] = {}
    for node, inside in reached(statements, scope, objects=True):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Compare):
            named |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.If):
            given = named.get(node.test.id) if isinstance(node.test, ast.Name) else None
            for comparison in [given] if given is not None else _comparisons(node.test):
                one = _improvement(node, comparison, statements, inside, by_name=given is not None)
                if one is not None:
                    found.setdefault((node.lineno, node.col_offset, id(inside.get("__file__"))), one)
    return list(found.values())


def _comparisons(test: ast.expr) -> Iterator[ast.Compare]:
    """The comparisons that must be true for a test to be true."""
    if isinstance(test, ast.Compare):
        yield test
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _comparisons(value)


def _improvement(
    node: ast.If, comparison: ast.Compare, statements: Sequence[ast.AST], scope: Mapping[str, Any], *, by_name: bool
) -> Improvement | None:
    order = _ORDERS.get(type(comparison.ops[0])) if len(comparison.ops) == 1 else None
    if order is None:
        return None
    left, right = comparison.left, comparison.comparators[0]
    for value, other, greater in ((left, right, order), (right, left, not order)):
        best = _carried(other)
        if best is None or isinstance(value, ast.Constant):
            continue
        if _keeps(node.body, best, value):
            branch, better = node.body, greater
        elif _keeps(node.orelse, best, value):
            branch, better = node.orelse, not greater
        elif by_name and any(_keeps_extreme(s, best, value, greater) for s in statements):
            branch, better = node.body, greater
        else:
            continue
        return Improvement(
            test=node,
            comparison=comparison,
            value=value,
            best=best,
            greater=better,
            branch=branch,
            scope=scope,
        )
    return None


def _carried(side: ast.expr) -> ast.expr | None:
    """The variable with the best value in one side of a comparison: `best`, `self.best`, `best - 1e-4`."""
    while isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub)):
        side = side.left
    return side if isinstance(side, _STORED) else None


def _keeps(branch: Sequence[ast.stmt], best: ast.expr, value: ast.expr) -> bool:
    """Whether a branch itself assigns the value to the variable."""
    return any(
        ast.unparse(target) == ast.unparse(best) and ast.unparse(given) == ast.unparse(value)
        for s in branch
        for target, given in assigned(s)
    )


def _keeps_extreme(statement: ast.AST, best: ast.expr, value: ast.expr, greater: bool) -> bool:
    """Whether a statement contains `best = max(best, value)`, or min if smaller values are better."""
    names = _EXTREMES[::2] if greater else _EXTREMES[1::2]
    return any(
        ast.unparse(target) == ast.unparse(best)
        and isinstance(given, ast.Call)
        and called_name(given) in names
        and {ast.unparse(a) for a in given.args} == {ast.unparse(best), ast.unparse(value)}
        for node in ast.walk(statement)
        for target, given in assigned(node)
    )


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target of an assignment, with the value that it gets."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts)
            else:
                yield target, node.value


def copies(value: ast.expr) -> bool:
    """Whether an expression copies tensors, on some device or other."""
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _COPYING) or (isinstance(n, ast.Name) and n.id in _COPYING)
        for n in ast.walk(value)
    )


def read_later(target: ast.expr, one: Improvement, own: Sequence[ast.AST], rest: Sequence[tuple[ast.AST, Any]]) -> int:
    """The line that uses a variable after the loop, or loads it as weights elsewhere in the loop; 0 if none does.

    Args:
        own: the nodes of the loop.
        rest: the nodes of the code after the loop, in its order, with the names that they can use.
    """
    text = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
    branch = {id(n) for s in one.branch for n in ast.walk(s)}
    for node in own:
        if isinstance(node, ast.Call) and called_name(node) == "load_state_dict" and id(node) not in branch:
            if _passes(node, text):
                return node.lineno
    for node, _ in rest:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(_is(t, text) for t, _ in assigned(node)):
            return 0  # something else, such as a file's content, takes its place
        if not isinstance(node, (ast.Return, ast.Call)) or (
            isinstance(node, ast.Call) and called_name(node) in _LOOKING
        ):
            continue
        if _passes(node, text):
            return node.lineno
    return 0


def _passes(node: ast.AST, text: str) -> bool:
    """Whether a call gets a variable as its argument or calls a method of it, or a return statement returns it."""
    if isinstance(node, ast.Call):
        parts: list[ast.AST] = [*node.args, *(k.value for k in node.keywords)]
        parts += [node.func.value] if isinstance(node.func, ast.Attribute) else [node.func]
    else:
        parts = [node]
    return any(_is(n, text) for part in parts for n in ast.walk(part))


def _is(node: ast.AST, text: str) -> bool:
    """Whether a node is the variable, or an attribute of that name."""
    if isinstance(node, ast.Attribute):
        return node.attr == text
    return isinstance(node, (ast.Name, ast.Subscript)) and ast.unparse(node) == text
