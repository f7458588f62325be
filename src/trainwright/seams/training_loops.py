"""The loops of a user's code, and which of them is the training: found in the frames that run, told by what they call."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any

from trainwright.seams.place import is_users, syntax_tree

# Calls that only a training step makes.
_TRAINING_CALLS = frozenset(["backward", "manual_backward"])
_GRADIENT_CALLS = frozenset(["grad"])
_IN_PLACE_CALLS = frozenset(["sub_", "add_", "copy_", "_foreach_sub_", "_foreach_add_"])
_STEPPING_CALLS = frozenset(["step"])
# A step that calls helpers which call helpers is followed this far.
CALL_DEPTH = 4

Scope = Mapping[str, Any]
Statement = ast.For | ast.While


@dataclass(frozen=True)
class Loop:
    """A `for` or `while` statement that a frame is running."""

    frame: FrameType
    node: Statement
    around: tuple[Statement, ...] = ()
    """The loops around it in the same function, the innermost first."""

    @property
    def file(self) -> str:
        """The source file."""
        return self.frame.f_code.co_filename

    @property
    def line(self) -> int:
        """The line of its head."""
        return self.node.lineno

    @property
    def scope(self) -> dict[str, Any]:
        """What its code can name."""
        return {**self.frame.f_globals, **self.frame.f_locals}


def training_loop(frame: FrameType | None, line: int | None = None) -> Loop | None:
    """The loop, around what a frame of the user's or one of its callers runs, whose body is one training step.

    Of several the innermost one that hands out data is taken, else the innermost one.

    Args:
        line: where the frame stood, if that is not where it stands now (a traceback's).
    """
    around: list[Loop] = []
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            around += loops_at(frame, line or frame.f_lineno)
        if frame.f_code.co_name == "<module>" and is_users(frame.f_code.co_filename):
            break  # what runs the script is not part of it
        frame, line = frame.f_back, None
    return _chosen(around)


def loop_of_error(error: BaseException) -> Loop | None:
    """The training loop that an exception ended."""
    link: TracebackType | None = error.__traceback__
    links = []
    while link is not None:
        links.append(link)
        link = link.tb_next
    found = []
    for link in reversed(links):
        if is_users(link.tb_frame.f_code.co_filename):
            found += loops_at(link.tb_frame, link.tb_lineno)
    return _chosen(found)


def _chosen(around: Sequence[Loop]) -> Loop | None:
    """Of loops around each other, the innermost first, the one whose body is a step.

    A loop around it that trains besides (a critic's five steps, then the generator's) has the whole step. Steps by hand
    count only where nothing else trains: an attack on the inputs has the look of one.
    """
    found = [loop for loop in around if trains(loop)] or [loop for loop in around if trains_by_hand(loop)]
    if not found:
        return None
    with_data = next((loop for loop in found if _hands_out_data(loop)), None)
    chosen = with_data or found[0]
    if not called_in(chosen.node.body, chosen.scope, _STEPPING_CALLS):
        stepping = next((n for n in chosen.around if _steps_outside(n, chosen)), None)
        if stepping is not None:
            return Loop(chosen.frame, stepping, chosen.around[chosen.around.index(stepping) + 1 :])
        owner = code_node(chosen.frame.f_code)
        callers = [loop for loop in found if loop.frame is not chosen.frame]
        if (
            callers
            and isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef))
            and _steps_outside(owner, chosen)
        ):
            return callers[0]
    if with_data is not None:
        return with_data
    for outer in chosen.around:
        rest = [s for s in outer.body if not s.lineno <= chosen.line <= (s.end_lineno or s.lineno)]
        if called_in(rest, chosen.scope, _TRAINING_CALLS):
            place = chosen.around.index(outer)
            chosen = Loop(chosen.frame, outer, chosen.around[place + 1 :])
    return chosen


def _steps_outside(outer: Statement | ast.FunctionDef | ast.AsyncFunctionDef, inner: Loop) -> bool:
    """Whether the code around a loop makes an optimizer's step that the loop itself does not."""
    calls = [n for s in outer.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    owners = [c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "step"]
    return any(_is_optimizer(resolve(owner, inner.scope)) for owner in owners)


def loops_at(frame: FrameType, line: int) -> list[Loop]:
    """The loops of a frame's code around a line, the innermost first; a loop's head belongs to it."""
    owner = code_node(frame.f_code)
    if owner is None:
        return []
    nodes = [loop for node in own_nodes(owner) for loop in _as_loops(node)]
    around = [node for node in nodes if _spans(node, line)]
    around.sort(key=lambda node: (node.lineno, -_depth(node)), reverse=True)
    return [Loop(frame, node, tuple(around[i + 1 :])) for i, node in enumerate(around)]


def _as_loops(node: ast.AST) -> list[Statement]:
    """A loop as it is; a comprehension as the loops that it stands for; none for other code."""
    if isinstance(node, (ast.For, ast.While)):
        return [node]
    if not isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return []
    body: list[ast.stmt] = [ast.copy_location(ast.Expr(node.elt), node.elt)]
    loops: list[Statement] = []
    for over in reversed(node.generators):
        if over.ifs:
            test = over.ifs[0] if len(over.ifs) == 1 else ast.BoolOp(ast.And(), over.ifs)
            body = [ast.copy_location(ast.If(test=test, body=body, orelse=[]), node.elt)]
        loop = ast.copy_location(ast.For(target=over.target, iter=over.iter, body=body, orelse=[]), node)
        loops.append(loop)
        body = [loop]
    return loops


def _depth(node: Statement) -> int:
    """How many loops are in a loop: those of one comprehension begin on the same line."""
    return sum(isinstance(n, (ast.For, ast.While)) for n in ast.walk(node))


def _spans(node: Statement, line: int) -> bool:
    last = max(node.body[-1].end_lineno or 0, node.lineno)
    if isinstance(node, ast.For):
        last = max(last, node.iter.end_lineno or 0)
    return node.lineno <= line <= last


def code_node(code: CodeType) -> ast.AST | None:
    """The module's or function's node that a code object was compiled from."""
    tree = syntax_tree(code.co_filename)
    if tree is None or code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            if first == code.co_firstlineno:
                return node
    return None


def own_nodes(owner: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module's or function's own code, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(owner):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            yield from own_nodes(node)


def _hands_out_data(loop: Loop) -> bool:
    """Whether what the loop's variables hold, or what it goes over, is data."""
    if not isinstance(loop.node, ast.For):
        return False
    names = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name)}
    held = [loop.frame.f_locals.get(n, loop.frame.f_globals.get(n)) for n in names]
    if any(_is_data(v) for v in held):
        return True
    used = {n.id for n in ast.walk(loop.node.iter) if isinstance(n, ast.Name)}
    reached = [v for n in used if (v := loop.scope.get(n)) is not None]
    reached += [v for o in reached for v in getattr(o, "__dict__", {}).values() if not isinstance(o, type)]
    return any(_is_loader(v) for v in reached)


def _is_data(value: Any, depth: int = 0) -> bool:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return len(value.shape) > 1 or (
            len(value.shape) == 1 and "int" not in str(value.dtype)
        )  # else indices
    if isinstance(value, Mapping) and depth < 2:
        return any(_is_data(v, depth + 1) for v in value.values())
    if isinstance(value, (list, tuple)) and depth < 2:
        return any(_is_data(v, depth + 1) for v in value[:8])
    return False


def _is_loader(value: Any) -> bool:
    return any(k.__name__ == "DataLoader" and k.__module__.startswith("torch.") for k in type(value).__mro__)


def loops_after(loop: Loop, frames: Sequence[FrameType]) -> list[int]:
    """The lines of further training loops, after this one, in its function and in those of its callers."""
    found = []
    for frame in (loop.frame, *frames):
        owner, line = code_node(frame.f_code), frame.f_lineno
        nodes = (
            [n for n in own_nodes(owner) if isinstance(n, (ast.For, ast.While))] if owner is not None else []
        )
        here = [n for n in nodes if _spans(n, line)]
        last = max((n.end_lineno or n.lineno for n in here), default=line)
        later = [
            Loop(frame, n)
            for n in nodes
            if n.lineno > last and not any(n in ast.walk(o) for o in nodes if o is not n)
        ]
        found += [one.line for one in later if trains(one)]
    return sorted(set(found))


def trains(loop: Loop) -> bool:
    """Whether a loop's body, or what it calls of the user's, goes backward or makes an optimizer step."""
    if called_in(loop.node.body, loop.scope, _TRAINING_CALLS):
        return True
    stepping = called_in(loop.node.body, loop.scope, _STEPPING_CALLS)
    return bool(stepping) and any(_is_optimizer(v) for v in _reachable(loop.scope))


def trains_by_hand(loop: Loop) -> bool:
    """Whether a loop's body asks for gradients (torch.autograd.grad) and changes tensors in place."""
    body, scope = loop.node.body, loop.scope
    if not called_in(body, scope, _GRADIENT_CALLS):
        return False
    return bool(called_in(body, scope, _IN_PLACE_CALLS)) or any(
        isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Sub) for n in _reached(body, scope)
    )


def _reachable(scope: Scope) -> Iterator[Any]:
    for value in scope.values():
        yield value
        if not isinstance(value, type) and is_users_object(value):
            yield from vars(value).values()


def is_users_object(value: Any) -> bool:
    """Whether a value is an instance of a class that the user wrote."""
    module = sys.modules.get(type(value).__module__)
    return hasattr(value, "__dict__") and is_users(getattr(module, "__file__", None) or "<built-in>")


def _is_optimizer(value: Any) -> bool:
    return hasattr(value, "param_groups") and hasattr(value, "step")


def called_in(body: Sequence[ast.AST], scope: Scope, names: frozenset[str]) -> set[str]:
    """Which of some names code calls, as methods or functions, by itself or through functions of the user's."""
    return {_called(n) for n in _reached(body, scope, names) if isinstance(n, ast.Call)} & names


def _reached(
    body: Sequence[ast.AST], scope: Scope, names: frozenset[str] = frozenset(), depth: int = 0
) -> Iterator[ast.AST]:
    """The nodes of code, and of the user's functions that it calls; those with one of the names are not looked into."""
    for statement in body:
        for node in ast.walk(statement):
            yield node
            if not isinstance(node, ast.Call) or _called(node) in names or depth == CALL_DEPTH:
                continue
            for function in users_functions(resolve(node.func, scope)):
                inner = code_node(function.__code__)
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    inside = {**function.__globals__, **closure(function)}
                    if isinstance(node.func, ast.Attribute) and inner.args.args:
                        inside[inner.args.args[0].arg] = resolve(node.func.value, scope)
                    yield from _reached(inner.body, inside, names, depth + 1)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def closure(function: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that a function can name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


def users_functions(value: Any) -> list[FunctionType]:
    """The function behind a value, if it is one that the user wrote."""
    if isinstance(value, MethodType):
        value = value.__func__
    value = getattr(value, "__wrapped__", value)
    return [value] if isinstance(value, FunctionType) and is_users(value.__code__.co_filename) else []


def resolve(node: ast.AST, scope: Scope) -> Any:
    """What a name or a chain of attributes stands for, read without running properties; None where that is not known."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, scope)
        method = getattr(type(owner), node.attr, None)
        return method if isinstance(method, FunctionType) else getattr(owner, "__dict__", {}).get(node.attr)
    return None


def count_of(node: Statement, scope: Scope) -> int | None:
    """How often a loop goes round, where what it goes over has a length; None where it does not."""
    if not isinstance(node, ast.For):
        return None
    expression = node.iter
    while (
        isinstance(expression, ast.Call) and expression.args and getattr(expression.func, "id", "") != "range"
    ):
        expression = expression.args[0]  # tqdm(loader), enumerate(loader)
    if not isinstance(expression, (ast.Call, ast.Name, ast.Attribute)):
        return None
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(expression))), "<length>", "eval")
    try:
        return len(eval(code, dict(scope)))
    except Exception:  # something of the user's that has no length
        return None
