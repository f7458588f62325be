"""Which statements of a function certainly run after one of its lines, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainwright.seams.source.written import last_name

Statement = tuple[ast.AST, bool]
"""A statement or part of one, and whether it is certain to run."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Code that runs at another time.
_LATER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_EXITS = ("exit", "quit", "_exit")
# Exception names in a handler that catch nearly every error.
_TAKING = ("Exception", "BaseException")


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and its descendants, excluding nested functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _LATER):
            yield from own_nodes(child)


def after(code: ast.AST, line: int, error: str) -> Iterator[Statement]:
    """The statements of a module or function that follow the one at a line, up to one that may leave it.

    Branches and loops that contain the line are certain; the body of a `try` is certain if the error is not caught.

    Args:
        error: the name of the exception in question.
    """
    for node, sure in _after(getattr(code, "body", []), line, error):
        yield node, sure
        if _may_leave(node):
            return


def _after(block: Sequence[ast.stmt], line: int, error: str) -> Iterator[Statement]:
    at = next((i for i, s in enumerate(block) if _holds(s, line)), None)
    if at is None:
        return
    holder = block[at]
    for name, inner in _blocks(holder):
        if any(_holds(s, line) for s in inner):
            taken = name == "body" and _takes(holder, error)
            yield from ((node, sure and not taken) for node, sure in _after(inner, line, error))
            if isinstance(holder, ast.Try):
                yield from _all(holder.orelse if name == "body" else [], error)
                yield from _all(holder.finalbody if name != "finalbody" else [], error)
    yield from _all(block[at + 1 :], error)


def _all(block: Sequence[ast.stmt], error: str) -> Iterator[Statement]:
    for statement in block:
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            yield from ((item, True) for item in getattr(statement, "items", []))
            taken = _takes(statement, error)
            yield from ((node, sure and not taken) for node, sure in _all(statement.body, error))
            if isinstance(statement, ast.Try):
                yield from _all([*statement.orelse, *statement.finalbody], error)
        elif not isinstance(statement, _LATER):
            yield statement, not isinstance(statement, (ast.If, ast.Match, *_LOOPS))


def _holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a compound statement by field name; handlers and cases have bodies of their own."""
    for name in ("body", "orelse", "finalbody"):
        yield name, getattr(statement, name, [])
    for name in ("handlers", "cases"):
        yield from ((name, part.body) for part in getattr(statement, name, []))


def _takes(statement: ast.stmt, error: str) -> bool:
    """Whether a `try` or `with` stops an error raised in its body."""
    taking: list[ast.expr | None] = []
    if isinstance(statement, ast.Try):
        taking = [handler.type for handler in statement.handlers]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        calls = [i.context_expr for i in statement.items if isinstance(i.context_expr, ast.Call)]
        taking = [kind for call in calls if last_name(call.func) == "suppress" for kind in call.args]
    named = [[last_name(n) for n in ast.walk(kind) if isinstance(n, ast.expr)] if kind else [error] for kind in taking]
    return any(error in names or set(names) & set(_TAKING) for names in named)


def _may_leave(node: ast.AST) -> bool:
    leaving = (ast.Return, ast.Raise) if isinstance(node, _LOOPS) else (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(
        isinstance(n, leaving) or (isinstance(n, ast.Call) and last_name(n.func) in _EXITS) for n in own_nodes(node)
    )
