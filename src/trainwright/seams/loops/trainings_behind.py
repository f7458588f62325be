"""The trainings that a script reaches behind the current one, from the code of its running frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.found_loops import (
    Loop,
    is_optimizer,
    loops_at,
)
from trainwright.seams.source.written import code_node

_NO_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Block:
    """A statement on the way to a line, with the block that contains it."""

    statements: Sequence[ast.stmt]
    index: int

    @property
    def statement(self) -> ast.stmt:
        """The statement itself."""
        return self.statements[self.index]

    @property
    def following(self) -> Sequence[ast.stmt]:
        """The statements after it in its block."""
        return self.statements[self.index + 1 :]


def way_to(code: CodeType, line: int, column: int = -1) -> list[Block]:
    """The blocks of a frame's code that lead to a line, the outermost first; to the statement there, given a column."""
    node: ast.AST | None = code_node(code)
    way: list[Block] = []
    while node is not None:
        found = next((b for block in _blocks(node) if (b := _at(block, line)) is not None), None)
        if found is None or isinstance(found.statement, _NO_CODE):
            return way
        way.append(found)
        node = found.statement
        if (node.lineno, node.col_offset) == (line, column):
            return way
    return way


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield block
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


def _at(block: Sequence[ast.stmt], line: int) -> Block | None:
    indexes = (i for i, s in enumerate(block) if s.lineno <= line <= (s.end_lineno or s.lineno))
    index = next(indexes, None)
    return None if index is None else Block(block, index)


def optimizers_of(loop: Loop, seen: Seen) -> list[Any]:
    """The optimizers that a loop's code names, itself or as members of objects; all that were built if it names none."""
    names = {n.id for n in ast.walk(loop.node) if isinstance(n, ast.Name)}
    values = [v for n in names if not isinstance(v := loop.scope.get(n), (type, ModuleType))]
    held = [v for o in values for v in getattr(o, "__dict__", {}).values()]
    return [v for v in (*values, *held) if is_optimizer(v)] or list(seen.optimizers)


def loops_of_training(loop: Loop, callers: Sequence[FrameType], seen: Seen) -> list[Loop]:
    """The loops that make up one training, the innermost first: the rounds of a loop around them that builds its
    optimizer anew are trainings of their own.

    Args:
        callers: the user's frames that led to the loop's, the nearest first.
        seen: what the script has built.
    """
    lasting = optimizers_of(loop, seen)
    found = [loop]
    for index, outer in enumerate(loop.around):
        one = Loop(loop.frame, outer, loop.around[index + 1 :])
        if _makes_anew(one, lasting):
            return found
        found.append(one)
    for frame in callers:
        around = [one for one in loops_at(frame, frame.f_lineno) if isinstance(one.node, (ast.For, ast.While))]
        if around and not _holds(frame, lasting):
            return found
        for one in around:
            if _makes_anew(one, lasting):
                return found
            found.append(one)
    return found


def _makes_anew(loop: Loop, lasting: Sequence[Any]) -> bool:
    """Whether a loop's body assigns the name of one of these objects."""
    names = {n for n, v in loop.scope.items() if any(v is one for one in lasting)}
    inside = (n for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name))
    return any(n.id in names and isinstance(n.ctx, ast.Store) for n in inside)


def _holds(frame: FrameType, lasting: Sequence[Any]) -> bool:
    """Whether a frame's own variables, or their attributes, contain one of these objects."""
    values = [v for v in frame.f_locals.values() if not isinstance(v, (type, ModuleType))]
    held = [v for o in values for v in getattr(o, "__dict__", {}).values()]
    known = {id(v) for v in (*values, *held)}
    return any(id(one) in known for one in lasting)
