"""Finds where calls, arguments, names and attributes were written in the source."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

from trainwright.core import Place
from trainwright.seams.source.places import is_users, show

End = tuple[int, int]
"""Line and column of a call's end, which no two calls share."""


@cache
def syntax_tree(file: str) -> ast.Module | None:
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except SyntaxError:
        return None


def class_file(kind: type) -> str | None:
    """The file of a class, also of a class of a script that has ended; None if it has none."""
    for value in vars(kind).values():
        code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
        if code is not None and code.co_name == getattr(value, "__name__", "") and code.co_filename != "<string>":
            return str(code.co_filename)
    try:
        return inspect.getsourcefile(kind)
    except (TypeError, OSError):  # built in, or of a script that has ended
        return None


def names_read(file: str) -> frozenset[str]:
    """The variables and attributes that a file's code reads anywhere."""
    tree = syntax_tree(file)
    nodes = list(ast.walk(tree)) if tree is not None else []
    variables = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return frozenset(variables | {n.attr for n in nodes if isinstance(n, ast.Attribute)})


def call_end(frame: FrameType, instruction: int | None = None) -> End | None:
    """The end of the call that a frame is executing; None if Python does not record columns.

    The call's beginning would not do: for a multi-line call, Python 3.12 reports that of the method's name.

    Args:
        instruction: the instruction in question, if the frame has advanced since.
    """
    at = frame.f_lasti if instruction is None else instruction
    positions = next(itertools.islice(frame.f_code.co_positions(), at // 2, None), None)
    _, line, _, column = positions or (None, None, None, None)
    return (line, column) if line is not None and column is not None else None


def call_node(
    file: str, line: int, name: str | None = None, given: frozenset[str] = frozenset(), end: End | None = None
) -> ast.Call | None:
    """The call expression that spans a line (whose function's last name is `name`) and ends there, else the innermost.

    Args:
        given: keywords that were passed: the call with most of them is preferred.
    """
    tree = syntax_tree(file)
    if tree is None:
        return None
    calls = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and n.lineno <= line <= (n.end_lineno or n.lineno)
        and (name is None or last_name(n.func) == name)
    ]
    calls = [c for c in calls if (c.end_lineno, c.end_col_offset) == end] or calls

    def order(call: ast.Call) -> tuple[int, int]:
        written = {k.arg for k in call.keywords if k.arg}
        return (
            len(written - given) - len(written & given) if given else 0,
            (call.end_lineno or call.lineno) - call.lineno,
        )

    return min(calls, key=order, default=None)


@dataclass(frozen=True, kw_only=True)
class FailedLine:
    """A line of the user's code on the way to an exception, in the frame that it ran in."""

    frame: FrameType
    line: int
    instruction: int

    def call(self, given: frozenset[str] = frozenset()) -> ast.Call | None:
        """The call that raised, as it is written; of several, that with most of these keywords."""
        end = call_end(self.frame, self.instruction)
        return call_node(self.frame.f_code.co_filename, self.line, given=given, end=end)

    @property
    def scope(self) -> dict[str, Any]:
        """The names that the line could use."""
        return {**self.frame.f_globals, **self.frame.f_locals}


def failed_lines(error: BaseException) -> list[FailedLine]:
    """The user's lines in an exception's traceback, the innermost last."""
    found, link = [], error.__traceback__
    while link is not None:
        found.append(FailedLine(frame=link.tb_frame, line=link.tb_lineno, instruction=link.tb_lasti))
        link = link.tb_next
    return [one for one in found if is_users(one.frame.f_code.co_filename)]


def is_written(place: Place, number: int) -> bool:
    """Whether a number is literally written on a line, among the arguments of a call."""
    return (place.line, number) in _written_numbers(place.file)


def forget_texts() -> None:
    """Forget what files say: they are read from copies, or no longer."""
    syntax_tree.cache_clear()
    _written_numbers.cache_clear()


@cache
def _written_numbers(file: str) -> frozenset[tuple[int, int]]:
    """Integers that are arguments of calls, or members of arguments, each with its line and that of its call."""
    tree = syntax_tree(file)
    found = set()
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)) if tree else ():
        for given in (*call.args, *(k.value for k in call.keywords)):
            for value in given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]:
                if isinstance(value, ast.Constant) and isinstance(value.value, int):
                    found |= {(value.lineno, value.value), (call.lineno, value.value)}
    return frozenset(found)


def last_name(node: ast.expr) -> str:
    """`Trainer` of `transformers.Trainer`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def keyword_places(
    file: str, line: int, name: str | None = None, given: frozenset[str] = frozenset(), end: End | None = None
) -> dict[str, tuple[Place, ast.expr]]:
    """Where each keyword argument of the call at a line was written, with its expression."""
    call = call_node(file, line, name, given, end)
    if call is None:
        return {}
    return {k.arg: (Place(show(file), k.value.lineno), k.value) for k in call.keywords if k.arg}


def assignment_place(file: str, name: str, before: int) -> Place | None:
    """The last line before `before` that assigns to `name`; rather one that assigns a call's result."""
    tree = syntax_tree(file)
    if tree is None:
        return None
    found = [
        n
        for n in ast.walk(tree)
        if isinstance(n, (ast.Assign, ast.AnnAssign))
        and n.lineno <= before
        and name in {t.id for t in ast.walk(_target(n)) if isinstance(t, ast.Name)}
    ]
    calls = [n for n in found if isinstance(n.value, ast.Call)]
    chosen = max(calls or found, key=lambda n: n.lineno, default=None)
    return Place(show(file), chosen.lineno) if chosen else None


def _target(node: ast.Assign | ast.AnnAssign) -> ast.AST:
    return ast.Tuple(elts=list(node.targets)) if isinstance(node, ast.Assign) else node.target


def attribute_place(file: str, owner: str, attribute: str, *, made: bool = False) -> Place | None:
    """The last line of a class that assigns to `self.attribute`; one in its constructor if there is no other.

    Args:
        made: ignore lines that add to it (`+=`).
    """
    tree = syntax_tree(file)
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == owner] if tree else []
    found: list[tuple[bool, int]] = []
    for method in (m for c in classes for m in c.body if isinstance(m, ast.FunctionDef)):
        for node in ast.walk(method):
            if made and isinstance(node, ast.AugAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            members = [m for t in targets if isinstance(t, ast.AST) for m in ast.walk(t)]
            if any(isinstance(m, ast.Attribute) and m.attr == attribute for m in members):
                found.append((method.name != "__init__", getattr(node, "lineno", method.lineno)))
    return Place(show(file), max(found)[1]) if found else None


def names_of(value: Any, frame: FrameType | None) -> list[str]:
    """The names of an object in a frame."""
    if frame is None:
        return []
    scope = {**frame.f_globals, **frame.f_locals}
    return [n for n, v in scope.items() if v is value and not n.startswith("__")]


def look_up(node: ast.expr, scope: dict[str, Any]) -> Any:
    """The value of a dotted name; nothing is called."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(look_up(node.value, scope), node.attr, None)
    return None


def code_node(code: CodeType) -> ast.AST | None:
    """The syntax node of the module or function that a code object was compiled from."""
    tree = syntax_tree(code.co_filename)
    if tree is None or code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            if first == code.co_firstlineno:
                return node
    return None


def call_line(code: CodeType, name: str, receiver: str = "") -> int | None:
    """The line of a function that calls a method of this name on a receiver of this name."""
    found = (c for c, f in _method_calls(code) if f.attr == name and receiver in last_name(f.value))
    return next((call.lineno for call in found), None)


def only_call(file: str, name: str) -> int | None:
    """The line of a file's only call of this last name; None if there are several, or none."""
    tree = syntax_tree(file)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and last_name(n.func) == name] if tree else []
    return calls[0].lineno if len(calls) == 1 else None


def evaluation_line(code: CodeType) -> int | None:
    """The line of a function that calls `.eval()` or `.train(False)`."""
    written = {"eval": [], "train": ["False"]}
    calls = _method_calls(code)
    return next((c.lineno for c, f in calls if [ast.unparse(a) for a in c.args] == written.get(f.attr)), None)


def _method_calls(code: CodeType) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    owner = code_node(code)
    for node in ast.walk(owner) if owner is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node, node.func


def key_places(file: str, key: str, before: float = math.inf, *, stored: bool = False) -> list[Place]:
    """Lines that write a value under a key: `x["key"] = …`, `{"key": …}`, `f(key=…)`, in order.

    Args:
        stored: only `x["key"] = …`.
    """
    tree = syntax_tree(file)
    found: set[int] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            keys: list[ast.expr | None] = [t.slice for t in targets if isinstance(t, ast.Subscript)]
        elif stored:
            continue
        elif isinstance(node, ast.Dict):
            keys = list(node.keys)
        elif isinstance(node, ast.Call):
            found |= {k.value.lineno for k in node.keywords if k.arg == key}
            continue
        else:
            continue
        found |= {k.lineno for k in keys if isinstance(k, ast.Constant) and k.value == key}
    return [Place(show(file), line) for line in sorted(found) if line <= before]


def imported_name_place(near: Place, name: str) -> Place | None:
    """The line on which the import statement at a place names something."""
    tree = syntax_tree(near.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node.lineno <= near.line <= (node.end_lineno or 0):
            return next((Place(near.file, a.lineno) for a in node.names if a.name == name), None)
    return None


def config_place(model: Any, file: str) -> dict[str, Place]:
    """The only line that builds the configuration of a model whose sizes it sets, in a file that loads no checkpoint."""
    config = getattr(model, "config", None)
    if config is None or "from_pretrained" in names_read(file) or not is_users(file):
        return {}
    line = only_call(file, type(config).__name__)
    return {"config": Place(show(file), line)} if line else {}


def configured_labels(model: Any) -> int | None:
    """The number of classes in a model's configuration; None: it has no such setting."""
    found = getattr(getattr(model, "config", None), "num_labels", None)
    return found if isinstance(found, int) else None
