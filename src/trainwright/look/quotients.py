"""What an evaluation's loop over a loader adds up, and the quotient that is made of it afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.seams.loops.found_loops import called_name, has_attributes, resolve

_ROWS, _BATCHES = "rows", "batches"


@dataclass(frozen=True, kw_only=True)
class WrittenQuotient:
    """A quotient after a loop over a loader: `correct / len(loader)`."""

    statement: ast.Assign | ast.AugAssign
    """The statement of the loop that computes the dividend."""
    quotient: ast.BinOp
    loader: Any
    by_rows: bool
    """The divisor is the number of rows, rather than of batches."""
    added: bool
    """The statement adds to the dividend, rather than assigning to it."""
    mean: bool | None
    """It adds the batch's mean, rather than its sum; None: neither is written there."""


def quotients_of(loop: ast.For, nodes: Sequence[ast.AST], scope: Mapping[str, Any]) -> Iterator[WrittenQuotient]:
    """The quotients behind a loop over a loader, of what it computes.

    Args:
        nodes: those of the function that the loop is in.
    """
    loader = _loader(loop, scope)
    inside = [n for s in loop.body for n in ast.walk(s)]
    if loader is None or any(isinstance(n, ast.Break) for n in inside):
        return
    nested = {id(n) for one in inside if isinstance(one, (ast.For, ast.While)) for n in ast.walk(one)}
    for statement in inside:
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or id(statement) in nested:
            continue
        target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
        if not isinstance(target, ast.Name):
            continue
        added = isinstance(statement, ast.AugAssign)
        if added and not isinstance(statement.op, ast.Add):  # type: ignore[union-attr]
            continue
        if not added and not _is_overwritten(target.id, loop, inside, nodes):
            continue
        for quotient in _quotients(target.id, loop, nodes):
            divisor = _divisor(quotient.right, loader, inside, scope)
            if divisor is not None:
                yield WrittenQuotient(
                    statement=statement,
                    quotient=quotient,
                    loader=loader,
                    by_rows=divisor == _ROWS,
                    added=added,
                    mean=_is_mean(statement.value),
                )


def _loader(loop: ast.For, scope: Mapping[str, Any]) -> Any:
    """The only loader in a loop's header."""
    named = [resolve(n, scope) for n in ast.walk(loop.iter) if isinstance(n, (ast.Name, ast.Attribute))]
    loaders = {id(v): v for v in named if has_attributes(v, "dataset", "collate_fn")}
    return next(iter(loaders.values())) if len(loaders) == 1 else None


def _is_overwritten(name: str, loop: ast.For, inside: Sequence[ast.AST], nodes: Sequence[ast.AST]) -> bool:
    """Whether a variable begins at zero before a loop, and the loop only assigns to it."""
    zeros = [n for n in nodes if isinstance(n, ast.Assign) and n.lineno < loop.lineno and _begins(n, name)]
    uses = [n for n in inside if isinstance(n, ast.Name) and n.id == name]
    return bool(zeros) and len(uses) == 1 and isinstance(uses[0].ctx, ast.Store)


def _begins(node: ast.Assign, name: str) -> bool:
    """Whether an assignment sets a variable to zero: `correct = 0`, `correct, total = 0, 0`, `a = b = 0.0`."""
    for target in node.targets:
        pairs = (
            zip(target.elts, node.value.elts)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            else [(target, node.value)]
        )
        for one, value in pairs:
            is_zero = isinstance(value, ast.Constant) and value.value == 0 and not isinstance(value.value, bool)
            if isinstance(one, ast.Name) and one.id == name and is_zero:
                return True
    return False


def _quotients(name: str, loop: ast.For, nodes: Sequence[ast.AST]) -> Iterator[ast.BinOp]:
    """The quotients after a loop with this dividend, times at most a constant, that are scaled no further."""
    end = loop.end_lineno or loop.lineno
    stored = [n.lineno for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    scaled = {
        id(part)
        for n in nodes
        if isinstance(n, ast.BinOp) and not isinstance(n.left, ast.Constant) and not isinstance(n.right, ast.Constant)
        for side in (n.left, n.right)
        for part in ast.walk(side)
    }
    for node in nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or node.lineno <= end:
            continue
        again = any(end < line <= node.lineno for line in stored)
        if not again and id(node) not in scaled and _is_dividend(node.left, name) and not _scaled_later(node, nodes):
            yield node


def _is_dividend(side: ast.expr, name: str) -> bool:
    """Whether an expression is a variable, as a number, times at most a constant."""
    if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
        parts = [p for p in (side.left, side.right) if not isinstance(p, ast.Constant)]
        return len(parts) == 1 and _is_dividend(parts[0], name)
    if isinstance(side, ast.Call) and called_name(side) in ("float", "int", "item", "double"):
        inner = side.func.value if isinstance(side.func, ast.Attribute) else side.args[0] if side.args else None
        return inner is not None and _is_dividend(inner, name)
    return isinstance(side, ast.Name) and side.id == name


def _scaled_later(quotient: ast.BinOp, nodes: Sequence[ast.AST]) -> bool:
    """Whether a variable that gets the quotient is multiplied or divided by more than a constant."""
    names = {
        t.id
        for n in nodes
        if isinstance(n, (ast.Assign, ast.AnnAssign)) and any(part is quotient for part in ast.walk(n))
        for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
        if isinstance(t, ast.Name)
    }
    return any(
        isinstance(n, (ast.BinOp, ast.AugAssign))
        and isinstance(n.op, (ast.Mult, ast.Div))
        and any(isinstance(p, ast.Name) and p.id in names for p in ast.walk(n))
        and n is not quotient
        and not any(isinstance(c, ast.Constant) for c in ast.iter_child_nodes(n))
        for n in nodes
    )


def _divisor(node: ast.expr, loader: Any, inside: Sequence[ast.AST], scope: Mapping[str, Any]) -> str | None:
    """Whether a divisor is the loader's number of rows or of batches; None if it is neither, or unknown."""
    if isinstance(node, ast.Call) and called_name(node) == "len" and len(node.args) == 1:
        counted = resolve(node.args[0], scope)
        return _BATCHES if counted is loader else _ROWS if counted is loader.dataset else None
    if isinstance(node, ast.Name):
        added = [n for n in inside if isinstance(n, ast.AugAssign) and ast.unparse(n.target) == node.id]
        if len(added) == 1 and isinstance(added[0].op, ast.Add):
            value = added[0].value
            if isinstance(value, ast.Constant):
                return _BATCHES if value.value == 1 else None
            return _ROWS if _is_size(value) else None
    return None


def _is_size(value: ast.expr) -> bool:
    """Whether an expression is a batch's size: `len(y)`, `y.size(0)`, `y.shape[0]`."""
    if isinstance(value, ast.Call):
        first = not value.args or (isinstance(value.args[0], ast.Constant) and value.args[0].value == 0)
        return called_name(value) == "len" or (called_name(value) == "size" and bool(value.args) and first)
    return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute) and value.value.attr == "shape"


def _is_mean(value: ast.expr) -> bool | None:
    """Whether an expression is the mean of something, rather than its sum; None if it is scaled, or neither."""
    calls = {called_name(n) for n in ast.walk(value) if isinstance(n, ast.Call)}
    scaled = any(isinstance(n, ast.BinOp) for n in ast.walk(value))
    if scaled or ("mean" in calls) == ("sum" in calls):
        return None
    return "mean" in calls
