"""The user's own training loop as a callable: its body, lifted out of the frame that runs it.

The body is compiled alone, with the file's name and its own line numbers, so that tracebacks and observations have the
user's lines. It runs in the module's own variables, or in a copy of a function's; these are restored whenever the body
starts over.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.loops.found_loops import Loop

_ITEM = "__trainwright_item__"
_LEFT = "__trainwright_left__"
_NUMBER = "__trainwright_number__"
_NEXT = "__trainwright_next__"


class LoopLeft(BaseException):
    """The body returned from its function: not an error, the step is over.

    Not an Exception, so that the user's `except Exception` does not catch it.
    """


@dataclass
class LiftedCode:
    """User statements that can be run repeatedly.

    A module's code runs in the module's own variables, a function's code in a copy of the names that it can use.
    `start_over` restores the names' values; the owner of the state restores the contents of lists and dictionaries.

    Args:
        loop: the loop whose frame contains the statements.
        code: the compiled statements.
    """

    loop: Loop
    code: CodeType
    namespace: dict[str, Any] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frame = self.loop.frame
        at_module = frame.f_locals is frame.f_globals
        self.namespace = frame.f_globals if at_module else {**frame.f_globals, **frame.f_locals}
        self._kept = dict(self.namespace)

    def run(self, item: Any = None, number: Any = None, draw: Callable[..., Any] = next) -> None:
        """Run them once; leaving the loop or the function ends them.

        Args:
            number: the value of a counting loop's variable in conditions: the progress of training, whichever item is
                used.
            draw: replaces `next` in the body.
        """
        self.namespace |= {_ITEM: item, _LEFT: LoopLeft, _NUMBER: number, _NEXT: draw}
        try:
            exec(self.code, self.namespace)
        except (LoopLeft, SystemExit):
            return

    def keep(self) -> None:
        """Make the variables' current values those that `start_over` restores."""
        self._kept = dict(self.namespace)

    def start_over(self) -> None:
        """Restore every variable's value from when the code was lifted."""
        for name in [n for n in self.namespace if n not in self._kept]:
            del self.namespace[name]
        self.namespace.update(self._kept)


def lift_body(loop: Loop) -> LiftedCode:
    """The loop's body as code that runs with one of the loop's items."""
    node = loop.node
    if isinstance(node, ast.For):
        target: ast.expr = copy.deepcopy(node.target)
    else:
        target = ast.Name("__trainwright_turn__", ast.Store())
    body = [_Drawn(loop.scope).visit(copy.deepcopy(s)) for s in node.body]
    if isinstance(target, ast.Name):
        body = [_Numbered(target.id).visit(s) for s in body]
    once = ast.For(target=target, iter=ast.Tuple([ast.Name(_ITEM, ast.Load())], ast.Load()), body=body, orelse=[])
    return LiftedCode(loop, _compile([ast.copy_location(once, node)], loop))


def lift_statements(loop: Loop, statements: Sequence[ast.stmt]) -> LiftedCode:
    """Other statements of the loop's function as code; a `break` or `continue` among them ends them."""
    once = ast.For(
        target=ast.Name("__trainwright_turn__", ast.Store()),
        iter=ast.Tuple([ast.Name(_ITEM, ast.Load())], ast.Load()),
        body=[copy.deepcopy(s) for s in statements] or [ast.Pass()],
        orelse=[],
    )
    return LiftedCode(loop, _compile([ast.copy_location(once, statements[0] if statements else loop.node)], loop))


def items_of(loop: Loop, namespace: dict[str, Any]) -> Iterator[Any]:
    """What the loop iterates over, restarted; an endless series of None for a `while`."""
    node = loop.node
    if not isinstance(node, ast.For):
        while True:
            yield None
    expression = ast.Expression(_Liftable(_class_name(loop), _first_argument(loop)).visit(copy.deepcopy(node.iter)))
    # Not `yield from`: closing this generator would close a file that the loop reads.
    given = eval(compile(ast.fix_missing_locations(expression), loop.file, "eval"), namespace)
    iterator = passed_on(iter, given)
    while (item := passed_on(next, iterator, _ENDED)) is not _ENDED:
        yield item


_ENDED = object()


def _compile(statements: list[ast.stmt], loop: Loop) -> CodeType:
    changed = [_Liftable(_class_name(loop), _first_argument(loop)).visit(s) for s in statements]
    module = ast.Module(body=changed, type_ignores=[])
    return compile(ast.fix_missing_locations(module), loop.file, "exec")


def _first_argument(loop: Loop) -> str:
    code = loop.frame.f_code
    return code.co_varnames[0] if code.co_argcount else ""


def _class_name(loop: Loop) -> str:
    parts = loop.frame.f_code.co_qualname.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""


class _Drawn(ast.NodeTransformer):
    """Lets the caller of the body draw `next(iterator)`, so that it can yield the same item again."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._own = "next" in scope

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "next" and not self._own:
            node.func = ast.copy_location(ast.Name(_NEXT, ast.Load()), node.func)
        return node


class _Numbered(ast.NodeTransformer):
    """In conditions, replaces a counting loop's variable by the progress of training, even if the item is another.

    Lookups with the variable (`labels[i] > 0`) use the item's number.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _visit_test(self, node: Any) -> Any:
        self.generic_visit(node)
        if not any(isinstance(n, (ast.Subscript, ast.Call)) and self._names(n) for n in ast.walk(node.test)):
            node.test = _Renamed(self._name, _NUMBER).visit(node.test)
        return node

    def _names(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id == self._name for n in ast.walk(node))

    visit_If = visit_IfExp = visit_While = _visit_test


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, to: str) -> None:
        self._name, self._to = name, to

    def visit_Name(self, node: ast.Name) -> ast.AST:
        changed = node.id == self._name and isinstance(node.ctx, ast.Load)
        return ast.copy_location(ast.Name(self._to, ast.Load()), node) if changed else node


class _Liftable(ast.NodeTransformer):
    """Makes a function's code runnable outside it: `return` leaves, `yield` yields nothing, `self.__x` is mangled."""

    def __init__(self, owner: str, first: str = "") -> None:
        self._owner = owner.lstrip("_")
        self._first = first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        left = ast.copy_location(ast.Raise(exc=ast.Name(_LEFT, ast.Load()), cause=None), node)
        return [ast.copy_location(ast.Expr(node.value), node), left] if node.value is not None else left

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        self.generic_visit(node)
        return node.value or ast.copy_location(ast.Constant(None), node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.generic_visit(node)
        read = ast.Call(ast.Name("list", ast.Load()), [node.value], [])
        return ast.copy_location(read, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first:
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._owner}{node.attr}"
        return node
