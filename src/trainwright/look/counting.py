"""What a script's statements make of its evaluations: the variables that they add to or assign, with the values before each batch,
and the quotients that are made of these afterwards."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

from trainwright.core import Place
from trainwright.seams.loops.found_loops import called_name, has_attributes, loops_at, own_nodes, resolve
from trainwright.seams.source.places import is_ours, is_users, show
from trainwright.seams.source.written import code_node
from trainwright.seams.torch.marks import ModelCall
from trainwright.stages import Comparison, Counter, Quotient

Statement = ast.Assign | ast.AugAssign


@dataclass(eq=False)
class CountingStatement:
    """A statement that gets a number of evaluated batches, and its variable."""

    statement: Statement
    file: str
    name: str
    begun_at: Place | None
    """Where it, or the object that holds it, was last set before."""
    is_counted: bool
    """Whether the statement adds to it, and the loop around all passes reads it: what is read behind it is of all of them."""
    quotients: Sequence[WrittenQuotient]
    values: dict[int, dict[int, float | None]] = field(default_factory=dict)
    """Its value before each batch, by the pass and by the number of the model's call."""

    def find_counter(self) -> Counter | None:
        """The variable, if the second pass began with what the first one had come to."""
        first, second = ([v for v in self.values.get(of, {}).values() if v is not None] for of in (0, 1))
        if not self.is_counted or len(first) < 2 or not second or not first[0] < first[-1] <= second[0]:
            return None
        at, start, once = Place(show(self.file), self.statement.lineno), first[0], second[0]
        return Counter(
            name=self.name, start=start, once=once, twice=once, carried=True, added_at=at, begun_at=self.begun_at
        )

    def list_quotients(self, comparisons: Sequence[tuple[ModelCall, Comparison]]) -> Iterator[Quotient]:
        """The quotients of the variable, with what the first pass compared in each batch; only those of several batches."""
        batches, file = len(self.values.get(0, ())), show(self.file)
        lines = range(self.statement.lineno, (self.statement.end_lineno or self.statement.lineno) + 1)
        compared = [
            (round(one.equal_share * math.prod(one.result)), math.prod(one.result))
            for call, one in comparisons
            if call.turn == 0 and one.equal_share is not None and one.operation == "=="
            if one.where is not None and one.where.file == file and one.where.line in lines
        ]
        for one in self.quotients if batches > 1 else ():
            yield Quotient(
                name=self.name,
                written=ast.unparse(one.statement),
                quotient=ast.unparse(one.quotient),
                by_rows=one.by_rows,
                added=one.added,
                mean=one.mean,
                compared=tuple(compared) if len(compared) == batches else (),
                batches=batches,
                where=Place(file, one.statement.lineno),
                divided_at=Place(file, one.quotient.lineno),
            )


class Tallies:
    """The statements that get what a model's answers came to."""

    def __init__(self) -> None:
        self._found: dict[Statement, CountingStatement] = {}

    @property
    def each(self) -> Sequence[CountingStatement]:
        """In their order."""
        return [*self._found.values()]

    def note(self, frame: FrameType | None, number: int, call: int) -> None:
        """A call's answers became a comparison, a loss or a number in this frame of the script, in the pass of a number."""
        while frame is not None and not is_ours(frame.f_code.co_filename):
            statement = _statement_at(frame.f_code, frame.f_lineno) if is_users(frame.f_code.co_filename) else None
            if statement is not None:
                tally = self._found.get(statement) or _begin(statement, frame)
                known = self._found.setdefault(statement, tally).values.setdefault(number, {})
                if call not in known:
                    known[call] = _number(resolve(_target(statement), _scope(frame)))
            frame = frame.f_back


def _begin(statement: Statement, frame: FrameType) -> CountingStatement:
    loops, owner, file = loops_at(frame, statement.lineno), code_node(frame.f_code), frame.f_code.co_filename
    found: list[WrittenQuotient] = []
    if loops and owner is not None and isinstance(loops[0].node, ast.For):
        found = list(quotients_of(loops[0].node, list(own_nodes(owner)), _scope(frame)))
    around = loops[-1].node if loops else None
    name, begun_at = _origin(_target(statement), frame)
    return CountingStatement(
        statement=statement,
        file=file,
        name=name,
        begun_at=begun_at,
        is_counted=_adds(statement) and (around is None or _is_read(statement, around)),
        quotients=[q for q in found if q.statement is statement and hasattr(q.loader, "__len__") and len(q.loader) > 1],
    )


@cache
def _statement_at(code: CodeType, line: int) -> Statement | None:
    """The innermost statement at a line, if it assigns or adds to one variable."""
    owner = code_node(code)
    nodes = [n for n in own_nodes(owner) if isinstance(n, ast.stmt)] if owner is not None else []
    around = [n for n in nodes if n.lineno <= line <= (n.end_lineno or n.lineno)]
    inner = max(around, key=lambda n: n.lineno, default=None)
    if isinstance(inner, ast.AugAssign):
        return inner if isinstance(inner.op, ast.Add) else None
    return inner if isinstance(inner, ast.Assign) and len(inner.targets) == 1 else None


def _target(statement: Statement) -> ast.expr:
    return statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]


def _adds(statement: Statement) -> bool:
    """Whether it is `x += …` or `x = x + …`."""
    value, text = statement.value, ast.unparse(_target(statement))
    if isinstance(statement, ast.AugAssign):
        return True
    is_sum = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
    return is_sum and text in (ast.unparse(value.left), ast.unparse(value.right))  # type: ignore[attr-defined]


def _is_read(statement: Statement, loop: ast.AST) -> bool:
    """Whether a loop reads the variable elsewhere; an object's may be read anywhere."""
    target, own = _target(statement), {id(n) for n in ast.walk(statement)}
    reads = (n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in own)
    return not isinstance(target, ast.Name) or any(n.id == target.id for n in reads)


def _origin(target: ast.expr, frame: FrameType) -> tuple[str, Place | None]:
    """What the script calls a variable, and the last line before that sets it, or makes the object that holds it."""
    text, root = ast.unparse(target), target
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    name, held = ast.unparse(root), resolve(root, _scope(frame))
    begun: Place | None = None
    around: FrameType | None = frame
    while around is not None and not is_ours(around.f_code.co_filename):
        named = [
            n for n, v in around.f_locals.items() if (v is held and n != "self" if root is not target else n == name)
        ]
        owner = code_node(around.f_code) if named else None
        lines = [
            n.lineno
            for n in (own_nodes(owner) if owner is not None else ())
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.lineno < around.f_lineno
            if any(isinstance(t, ast.Name) and t.id == named[0] and isinstance(t.ctx, ast.Store) for t in ast.walk(n))
        ]
        if lines:
            begun, name = Place(show(around.f_code.co_filename), max(lines)), named[0]
        around = around.f_back if root is not target or not named else None
    return name + text[len(ast.unparse(root)) :], begun


def _scope(frame: FrameType) -> dict[str, Any]:
    return {**frame.f_globals, **frame.f_locals}


def _number(value: Any) -> float | None:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


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
