"""Ends a training loop of the script whose time is over, so that the script goes on behind it.

Loaders end after a batch, and at the beginning of a round the script jumps behind the loop, as a debugger jumps. Where it
cannot (the loop is the last statement of its function), the loop runs on with what its loaders still give.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

from trainwright.seams.failures.watchdog import NoMoreBatches
from trainwright.seams.listening.doors import standing, watch_door
from trainwright.seams.loops.found_loops import Loop, is_optimizer, loops_at
from trainwright.seams.source.places import callers
from trainwright.seams.source.written import code_node
from trainwright.timing import now

# How much longer a loop between the innermost and the outermost may take: the phases of an epoch belong together, and
# take no time once their loaders end after a batch.
ROUND_SECONDS = 1.0
_UNJUMPABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_NO_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def loops_of_training(frame: FrameType) -> list[Loop]:
    """The loops around an update that is being made, the innermost first, that make up its training: the rounds of a loop
    around them that builds its optimizer anew are trainings of their own.

    Args:
        frame: the script's, nearest to the update.
    """
    found: list[Loop] = []
    lasting: list[Any] = []
    for one in (frame, *callers(frame)):
        around = loops_at(one, one.f_lineno)
        if found and around and not any(held is optimizer for held in _held_by(one.f_locals) for optimizer in lasting):
            return found
        for loop in around:
            lasting = _optimizers_of(loop) or lasting
            if found and _makes_anew(loop, lasting):
                return found
            if not _goes_through(loop, lasting):
                found.append(loop)
    return found


def _optimizers_of(loop: Loop) -> list[Any]:
    """The optimizers that a loop's code names, itself or as members of objects."""
    names = {n.id for n in ast.walk(loop.node) if isinstance(n, ast.Name)}
    return [v for v in _held_by({n: v for n, v in loop.scope.items() if n in names}) if is_optimizer(v)]


def _held_by(names: Mapping[str, Any]) -> list[Any]:
    """What these names stand for, and the members of these objects."""
    values = [v for v in names.values() if not isinstance(v, (type, ModuleType))]
    return [*values, *(v for o in values for v in getattr(o, "__dict__", {}).values())]


def _makes_anew(loop: Loop, lasting: Sequence[Any]) -> bool:
    """Whether a loop's body assigns the name of one of these objects, other than by going through several."""
    names = _names_of(loop, lasting)
    inside = [n for statement in loop.node.body for n in ast.walk(statement)]
    gone_through = {id(n) for one in inside if isinstance(one, ast.For) for n in ast.walk(one.target)}
    stored = (n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(n.id in names and id(n) not in gone_through for n in stored)


def _goes_through(loop: Loop, lasting: Sequence[Any]) -> bool:
    """Whether a loop goes through several of these objects: its rounds are no updates."""
    names = _names_of(loop, lasting)
    return isinstance(loop.node, ast.For) and any(
        isinstance(n, ast.Name) and n.id in names for n in ast.walk(loop.node.target)
    )


def _names_of(loop: Loop, lasting: Sequence[Any]) -> set[str]:
    return {name for name, value in loop.scope.items() if any(value is one for one in lasting)}


def can_shorten(loops: Sequence[Loop]) -> bool:
    """Whether these loops can be followed and ended: nothing else traces the script, and none is in a generator."""
    in_generator = any(one.frame.f_code.co_flags & _UNJUMPABLE for one in loops)
    return sys.gettrace() is None and not in_generator


class ShortenedLoop:
    """The loops of one training, from when they are to end.

    Args:
        loops: the innermost first.
        cut: called where less is given to them, or rounds are left out; a loop that cannot be ended runs on as it is.
        left: called once the script has left them.
    """

    def __init__(self, loops: Sequence[Loop], cut: Callable[[], None], left: Callable[[], None]) -> None:
        self.runs = True
        self._top = loops[-1]
        self._between = {id(one.node) for one in loops[1:-1]}
        self._until = now()
        self._starts = {(id(one.frame), one.node.body[0].lineno): one for one in loops}
        self._frames = list({id(one.frame): one.frame for one in loops}.values())
        self._line = {id(frame): frame.f_lineno for frame in self._frames}
        self._inside = {id(one.node) for one in loops}
        self._cut, self._left = cut, left
        self._begun: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stack = contextlib.ExitStack()

    def begin(self) -> None:
        """Follow the loops from now on."""
        if (loaders := sys.modules.get("torch.utils.data.dataloader")) is not None:
            with standing(self._stack):
                watch_door(loaders.DataLoader, "__iter__", self._begin_pass)
                watch_door(loaders._BaseDataLoaderIter, "__next__", self._draw)
        self._stack.callback(sys.settrace, sys.gettrace())
        for frame in self._frames:
            self._stack.callback(setattr, frame, "f_trace", frame.f_trace)
            frame.f_trace = self._at_line
        sys.settrace(lambda frame, event, given: None)

    def end(self) -> None:
        """Stop following; the script has left the loops, or is not followed any longer."""
        if self.runs:
            self.runs = False
            self._stack.close()
            self._left()

    def _begin_pass(self, go_on: Any, loader: Any) -> Any:
        """A loader begins a pass; its workers may stay, with the iterator of the one before."""
        iterator = go_on(loader)
        if any(one is iterator for one in self._begun):  # what others give may have no weak references
            self._begun.discard(iterator)
        return iterator

    def _draw(self, go_on: Any, iterator: Any) -> Any:
        """A loader's next batch; each of its passes gives one more."""
        self._cut()
        if iterator in self._begun:
            raise NoMoreBatches
        self._begun.add(iterator)
        return go_on(iterator)

    def _at_line(self, frame: FrameType, event: str, given: Any) -> Any:
        if not self.runs:
            return None
        if frame is self._top.frame and (event == "return" or (event == "line" and not self._is_inside(frame))):
            self.end()
            return None
        if event == "line":
            before, self._line[id(frame)] = self._line[id(frame)], frame.f_lineno
            loop = self._starts.get((id(frame), frame.f_lineno))
            first = loop.node.body[0] if loop is not None else None
            again = isinstance(first, (ast.For, ast.While)) and _is_inside(first, before)  # a round of the inner loop
            late = ROUND_SECONDS if loop is not None and id(loop.node) in self._between else 0.0
            if loop is not None and now() >= self._until + late and not again:
                self._jump(frame, loop)
        return self._at_line if self.runs else None

    def _is_inside(self, frame: FrameType) -> bool:
        return _is_inside(self._top.node, frame.f_lineno)

    def _jump(self, frame: FrameType, loop: Loop) -> None:
        """Continue behind the outermost loop around that can be left."""
        for one in (*[Loop(frame, n) for n in reversed(loop.around) if id(n) in self._inside], loop):
            line, way = self._line_behind(one) if one.node.body[0].lineno == frame.f_lineno else (0, 0)
            if line and (way or _begins_once(frame, line)):
                with warnings.catch_warnings(), contextlib.suppress(ValueError):  # no line that can be jumped to
                    warnings.simplefilter("ignore", RuntimeWarning)  # names that are unbound become None
                    frame.f_lineno = way or line  # type: ignore[misc]  # writable in a trace function
                    frame.f_lineno = line  # type: ignore[misc]
                    self._cut()
                    if frame is self._top.frame and not self._is_inside(frame):
                        self.end()
                    return

    def _line_behind(self, loop: Loop) -> tuple[int, int]:
        """The line of the statement that follows a loop in its function, and the one by way of which to jump there; 0 if no
        block around it goes on, or there is no such line."""
        for block in reversed(way_to(loop.frame.f_code, loop.line, loop.node.col_offset)):
            for statement in block.following:
                if not _is_nothing(statement):
                    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
                    beside = (one.lineno for one in block.statements if _begins_once(loop.frame, one.lineno))
                    return min([statement.lineno, *(d.lineno for d in decorators)]), next(beside, 0)
            # Block by block outwards, as long as leaving one runs nothing of its own.
            around = _owner_of(block.statements, loop)
            if not (isinstance(around, ast.If) or id(around) in self._inside):
                return 0, 0
        return 0, 0


def _begins_once(frame: FrameType, line: int) -> bool:
    """Whether a line is come to from above only. Python jumps to the place of a line that keeps the most of its stack: into the
    end of a `with`, or the next round of a `for`, with the iterator of the loop that is left. By way of such a line nothing is
    left on the stack."""
    return sum(one == line for _, one in dis.findlinestarts(frame.f_code)) == 1


def _owner_of(statements: Sequence[ast.stmt], loop: Loop) -> ast.AST | None:
    """The statement whose block this is; None for the function itself."""
    way = way_to(loop.frame.f_code, loop.line, loop.node.col_offset)
    at = next(i for i, block in enumerate(way) if block.statements is statements)
    return way[at - 1].statement if at else None


def _is_inside(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _is_nothing(statement: ast.stmt) -> bool:
    """Whether a statement has no code of its own."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, (ast.Pass, ast.Global, ast.Nonlocal))


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
