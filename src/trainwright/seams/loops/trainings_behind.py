"""The trainings that a script reaches behind the current one, from the code of its running frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.found_loops import (
    Loop,
    Scope,
    called_name,
    is_optimizer,
    loops_at,
    reached,
    resolve,
)
from trainwright.seams.source.places import show
from trainwright.seams.source.written import code_node, last_name, syntax_tree

_NO_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_FRAMEWORKS = ("transformers", "keras", "tf_keras")
# Methods that train, and the names of the classes whose methods they are.
_OWNERS = {"train": ("Trainer",), "fit": ("Model",)}


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


def behind_call(frames: Sequence[FrameType]) -> list[Place]:
    """The lines of the trainings behind a call that trains.

    Args:
        frames: the user's frame with the call, and those that led to it, the nearest first.
    """
    return _behind(frames, Place(show(frames[0].f_code.co_filename), frames[0].f_lineno), [])


def _behind(frames: Sequence[FrameType], again: Place, ways: list[list[Block]]) -> list[Place]:
    found: list[Place] = []
    for index, frame in enumerate(frames):
        way = ways[index] if index < len(ways) else way_to(frame.f_code, frame.f_lineno)
        scope = {**frame.f_globals, **frame.f_locals}
        inner = way[:-1] if index < len(ways) else way
        repeats = [b.statement for b in inner if isinstance(b.statement, (ast.For, ast.While))]
        if repeats or _is_comprehension(frame):
            found.append(again)
        later = [s for block in reversed(way) for s in block.following if not isinstance(s, _NO_CODE)]
        found += [Place(show(frame.f_code.co_filename), line) for s in later if (line := _first_line(s, scope, frame))]
    return sorted(set(found), key=lambda place: place.line)


def _is_comprehension(frame: FrameType) -> bool:
    return frame.f_code.co_name in ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


def _first_line(statement: ast.stmt, scope: Scope, frame: FrameType) -> int:
    """The line of a statement, or of the statement inside it, that trains; 0 if none does."""
    inner = [s for block in _blocks(statement) for s in block if not isinstance(s, _NO_CODE)]
    if inner and not isinstance(statement, (ast.For, ast.While)):
        return next((line for s in inner if (line := _first_line(s, scope, frame))), 0)
    code = [statement, *_functions_ahead([statement], scope, frame)]
    called = [(n, inside) for n, inside in reached(code, scope) if isinstance(n, ast.Call)]
    training = [n for n, inside in called if _trains(n, inside, frame)]
    if not training:
        return 0
    own = next((n for n in ast.walk(statement) if any(n is one for one in training)), statement)
    return getattr(own, "lineno", statement.lineno)


def _functions_ahead(code: Sequence[ast.AST], scope: Scope, frame: FrameType) -> list[ast.stmt]:
    """The functions that code calls by their names, and that the script has yet to define."""
    tree = syntax_tree(frame.f_code.co_filename)
    ahead = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name not in scope} if tree else {}
    found: dict[str, ast.stmt] = {}
    while code := [ahead[n] for n in _called_names(code) if n in ahead and n not in found]:
        found |= {n.name: n for n in code if isinstance(n, ast.FunctionDef)}
    return list(found.values())


def _called_names(code: Sequence[ast.AST]) -> list[str]:
    calls = (n for one in code for n in ast.walk(one) if isinstance(n, ast.Call))
    return list(dict.fromkeys(called_name(call) for call in calls if isinstance(call.func, ast.Name)))


def _trains(call: ast.Call, scope: Scope, frame: FrameType) -> bool:
    """Whether a call is one of a trainer's `train`, or of the `fit` of a Keras model."""
    name = called_name(call)
    if name not in _OWNERS or not isinstance(call.func, ast.Attribute):
        return False
    return _is_owner(call.func.value, _OWNERS[name], scope, frame)


def _is_owner(receiver: ast.expr, names: tuple[str, ...], scope: Scope, frame: FrameType) -> bool:
    """Whether a receiver's class is one of a framework's with such a name, now or once it has been assigned."""
    if isinstance(receiver, ast.Call):
        return _makes_owner(receiver, names, scope)
    value = resolve(receiver, scope)
    if value is not None:
        return _is_frameworks(type(value), names)
    tree = code_node(frame.f_code)
    written = ast.unparse(receiver)
    assigns = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)] if tree is not None else []
    made = [n.value for n in assigns if any(written == ast.unparse(t) for t in n.targets)]
    return any(isinstance(call, ast.Call) and _makes_owner(call, names, scope) for call in made)


def _makes_owner(call: ast.Call, names: tuple[str, ...], scope: Scope) -> bool:
    """Whether a call makes such an object: of its class, by a function of Keras, or by a function that returns one."""
    maker = _called(call.func, scope)
    if isinstance(maker, type):
        return _is_frameworks(maker, names)
    if isinstance(maker, FunctionType) and maker.__module__.partition(".")[0] in ("keras", "tf_keras"):
        return "Model" in names
    if maker is None:
        return last_name(call.func).endswith("Trainer")
    inside = (n for n, _ in reached([ast.Expr(call)], scope) if isinstance(n, ast.Call) and n is not call)
    return any(isinstance(kind := _called(n.func, scope), type) and _is_frameworks(kind, names) for n in inside)


def _called(node: ast.expr, scope: Scope) -> Any:
    """A function or class by its name; unlike `resolve`, members of lazily loaded modules are found, too."""
    value = resolve(node, scope)
    if value is None and isinstance(node, ast.Attribute):
        owner = _called(node.value, scope)
        value = getattr(owner, node.attr, None) if type(owner).__name__ in ("module", "_LazyModule") else None
    return value


def _is_frameworks(kind: type, names: tuple[str, ...]) -> bool:
    return any(k.__name__ in names and k.__module__.partition(".")[0] in _FRAMEWORKS for k in kind.__mro__)


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
