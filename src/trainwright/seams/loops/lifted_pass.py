"""One pass of the loop around a training loop (an epoch), and the code after it, lifted out of the user's frames.

The caller decides how many rounds the training loop makes. If the training loop is in a function that the epoch loop
calls, that function also runs with its loop cut short.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

from trainwright.seams.loops.found_loops import Loop, called_in, loops_at
from trainwright.seams.loops.lifting import LiftedCode, lift_statements
from trainwright.seams.source.written import code_node, last_name, syntax_tree

_OVER = "__trainwright_over__"
RETURNED = "__trainwright_returned__"
"""The name under which a pass stores its function's return value."""
_TRAINING = frozenset(["backward", "manual_backward"])
_UPDATING = _TRAINING | {"step", "zero_grad"}
# Packages that display, log or store: calls of them are left out.
_TELLING = (
    "matplotlib", "seaborn", "plotly", "wandb", "mlflow", "tensorboard", "tensorboardX", "torch.utils.tensorboard",
    "comet_ml", "neptune", "clearml", "aim", "subprocess", "shutil", "logging", "huggingface_hub", "joblib", "pickle",
)  # fmt: skip


@dataclass
class LiftedPass:
    """A pass that can be run repeatedly, followed by the code after the last pass.

    Args:
        training: the loop that trains.
        loop: the loop whose body is a pass; the training loop itself if there is none around it.
        statements: the user's statements of one pass.
    """

    training: Loop
    loop: Loop
    statements: list[ast.stmt]
    code: LiftedCode
    rest: list[LiftedCode] = field(default_factory=list)
    rest_statements: list[ast.stmt] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether it is a pass of a loop around the training loop, rather than one turn of that loop."""
        return self.loop.node is not self.training.node

    @property
    def namespace(self) -> dict[str, Any]:
        """The variables of the pass."""
        return self.code.namespace

    @contextlib.contextmanager
    def cut(self, over: Callable[[], bool]) -> Iterator[None]:
        """While the context lasts, the training loop ends when `over` returns true at the start of its body."""
        codes = [self.code, *self.rest]
        for code in codes:
            code.namespace[_OVER] = over
        try:
            with (
                _cut_function(self.training, over)
                if self.loop.frame is not self.training.frame
                else (contextlib.nullcontext())
            ):
                yield
        finally:
            for code in codes:
                code.namespace.pop(_OVER, None)

    def start_over(self) -> None:
        """Restore every variable's value from when the pass was lifted."""
        for code in (self.code, *self.rest):
            code.start_over()


def lift_pass(training: Loop, callers: Sequence[FrameType], lasting: Sequence[Any]) -> LiftedPass:
    """Lift the pass that contains a training loop.

    Args:
        callers: the user's frames that led to the training loop's, the nearest first.
        lasting: the trained models and optimizers: a loop that recreates them repeats the whole training.
    """
    loop = _around(training, callers, lasting) or training
    statements: list[ast.stmt] = list(loop.node.body) if loop is not training else [training.node]
    code = lift_statements(loop, _prepared(statements, training, loop.scope))
    found = LiftedPass(training=training, loop=loop, statements=statements, code=code)
    kept = {id(loop.frame): code}
    for frame, following in _following(loop, callers):
        found.rest_statements += following
        last = Loop(frame, loop.node)
        for statement in following:
            lifted = lift_statements(last, _prepared([statement], training, last.scope))
            lifted.namespace = kept.setdefault(id(frame), lifted).namespace
            found.rest.append(lifted)
    return found


def _around(training: Loop, callers: Sequence[FrameType], lasting: Sequence[Any]) -> Loop | None:
    """The nearest loop around the training loop whose passes continue to train the same objects."""
    if training.around:
        outer = Loop(training.frame, training.around[0], training.around[1:])
        return None if _makes_anew(outer, lasting) else outer
    for frame in callers:
        if not _reaches(frame, lasting):
            return None
        for loop in loops_at(frame, frame.f_lineno):
            return None if _makes_anew(loop, lasting) else loop
    return None


def _makes_anew(loop: Loop, lasting: Sequence[Any]) -> bool:
    """Whether a loop's body assigns to a name of a trained object."""
    names = {n for n, v in loop.scope.items() if any(v is one for one in lasting)}
    stored = {
        n.id for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return bool(names & stored)


def _reaches(frame: FrameType, lasting: Sequence[Any]) -> bool:
    """Whether a frame's variables, or their attributes, contain a trained object."""
    values = [*frame.f_locals.values(), *frame.f_globals.values()]
    held = [v for o in values if not isinstance(o, type) for v in getattr(o, "__dict__", {}).values()]
    known = {id(v) for v in (*values, *held)}
    return any(id(one) in known for one in lasting)


def _following(loop: Loop, callers: Sequence[FrameType]) -> Iterator[tuple[FrameType, list[ast.stmt]]]:
    """The statements reached after a loop's end, frame by frame, up to one that trains again."""
    frames = [loop.frame]
    frames += (
        [f for f in callers if f is not loop.frame]
        if loop.frame not in callers
        else (callers[list(callers).index(loop.frame) + 1 :])
    )
    called = ""
    for frame in frames:
        owner = code_node(frame.f_code)
        if owner is None:
            return
        line, column = (loop.node.lineno, loop.node.col_offset) if frame is loop.frame else (frame.f_lineno, -1)
        path = _path(owner, line, column)
        if not path:
            return
        found = [s for body, at in reversed(path) for s in body[at + 1 :]]
        current = path[-1][0][path[-1][1]]
        if called and (answered := _answered(current, called)) is not None:
            found.insert(0, answered)
        scope = {**frame.f_globals, **frame.f_locals}
        kept: list[ast.stmt] = []
        for statement in found:
            if called_in([statement], scope, _TRAINING):
                yield frame, kept
                return
            kept.append(statement)
        yield frame, kept
        called = frame.f_code.co_name


def _path(owner: ast.AST, line: int, column: int) -> list[tuple[list[ast.stmt], int]]:
    """The blocks from a function's own to the one with the statement at a line, with its position in each."""
    path: list[tuple[list[ast.stmt], int]] = []
    node: ast.AST = owner
    while True:
        blocks = [b for n in ("body", "orelse", "finalbody") if isinstance(b := getattr(node, n, None), list)]
        blocks += [h.body for h in getattr(node, "handlers", [])]
        inside = [
            (block, at)
            for block in blocks
            for at, s in enumerate(block)
            if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or s.lineno)
        ]
        if not inside or (isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node is not owner):
            return path
        path.append(inside[0])
        reached = inside[0][0][inside[0][1]]
        if column >= 0 and (reached.lineno, reached.col_offset) == (line, column):
            return path
        node = reached


def _answered(statement: ast.stmt, called: str) -> ast.stmt | None:
    """A statement in which the call of a function that has returned is replaced by the return value."""
    if isinstance(statement, (ast.For, ast.While, ast.With, ast.If, ast.Try, ast.FunctionDef, ast.ClassDef)):
        return None
    changed = copy.deepcopy(statement)
    answer = _Answer(called)
    changed = answer.visit(changed)
    return changed if answer.found else None


class _Answer(ast.NodeTransformer):
    def __init__(self, called: str) -> None:
        self.called = called
        self.found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if last_name(node.func) == self.called and not self.found:
            self.found = True
            return ast.copy_location(ast.Name(RETURNED, ast.Load()), node)
        self.generic_visit(node)
        return node


def _prepared(statements: Sequence[ast.stmt], training: Loop, scope: Mapping[str, Any]) -> list[ast.stmt]:
    """Copies with a cuttable training loop and stored return values, without logging and plotting."""
    change = _Prepare(training.line, training.node.col_offset, scope)
    found: list[ast.stmt] = []
    for statement in statements:
        changed = change.visit(copy.deepcopy(statement))
        found += changed if isinstance(changed, list) else [changed]
    return found


class _Cut(ast.NodeTransformer):
    """Inserts `if over(): break` at the start of a loop's body."""

    def __init__(self, line: int, column: int) -> None:
        self._at = (line, column)

    def _visit_loop(self, node: Any) -> Any:
        self.generic_visit(node)
        if (node.lineno, node.col_offset) == self._at:
            test = ast.Call(ast.Name(_OVER, ast.Load()), [], [])
            node.body.insert(0, ast.copy_location(ast.If(test, [ast.Break()], []), node))
        return node

    visit_For = visit_While = _visit_loop


class _Prepare(_Cut):
    def __init__(self, line: int, column: int, scope: Mapping[str, Any]) -> None:
        super().__init__(line, column)
        self._scope = scope

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is None:
            return node
        keep = ast.Assign([ast.Name(RETURNED, ast.Store())], node.value)
        return [ast.copy_location(keep, node), ast.copy_location(ast.Return(None), node)]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Call) and self._tells(node.value.func):
            return ast.copy_location(ast.Pass(), node)
        return node

    def _tells(self, function: ast.AST) -> bool:
        while isinstance(function, (ast.Attribute, ast.Call, ast.Subscript)):
            function = function.func if isinstance(function, ast.Call) else function.value
        value = self._scope.get(function.id) if isinstance(function, ast.Name) else None
        home = getattr(value, "__name__", None) if type(value).__name__ == "module" else None
        home = home or getattr(value, "__module__", None) or type(value).__module__
        return isinstance(home, str) and any(home == p or home.startswith(f"{p}.") for p in _TELLING)

    def visit_If(self, node: ast.If) -> ast.AST:
        """Run code that is conditional on the round (`step % 100`) unconditionally, if it does not train."""
        self.generic_visit(node)
        periodic = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(node.test))
        if periodic and not node.orelse and not called_in(node.body, self._scope, _UPDATING):
            node.test = ast.copy_location(ast.Constant(True), node.test)
        return node


@contextlib.contextmanager
def _cut_function(training: Loop, over: Callable[[], bool]) -> Iterator[None]:
    """While the context lasts, the functions that contain the training loop run with it cut."""
    code = training.frame.f_code
    tree = syntax_tree(code.co_filename)
    owners = [f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code]
    changed = _cut_code(tree, training, code) if tree is not None else None
    if changed is None or changed.co_freevars != code.co_freevars:
        yield
        return
    for function in owners:
        function.__globals__[_OVER] = over
        function.__code__ = changed
    try:
        yield
    finally:
        for function in owners:
            function.__code__ = code
            function.__globals__.pop(_OVER, None)


def _cut_code(tree: ast.Module, training: Loop, code: CodeType) -> CodeType | None:
    changed = _Cut(training.line, training.node.col_offset).visit(copy.deepcopy(tree))
    module = compile(ast.fix_missing_locations(changed), code.co_filename, "exec", dont_inherit=True)
    found = [module]
    for one in found:
        if (one.co_qualname, one.co_firstlineno) == (code.co_qualname, code.co_firstlineno):
            return one
        found += [c for c in one.co_consts if isinstance(c, CodeType)]
    return None


def reached_functions(
    statements: Sequence[ast.AST], scope: Mapping[str, Any], depth: int = 0
) -> dict[CodeType, tuple[ast.FunctionDef, FunctionType]]:
    """The user's functions that statements call, directly or indirectly, by their code."""
    from trainwright.seams.loops.found_loops import CALL_DEPTH, closure, resolve, users_functions

    found: dict[CodeType, tuple[ast.FunctionDef, FunctionType]] = {}
    for call in (n for s in statements for n in ast.walk(s) if isinstance(n, ast.Call)):
        value = resolve(call.func, scope)
        if isinstance(value, type) or depth >= CALL_DEPTH:
            continue
        functions = users_functions(value)
        if not functions and not isinstance(value, FunctionType):
            functions = users_functions(vars(type(value)).get("__call__"))
        for function in functions:
            node = code_node(function.__code__)
            if isinstance(node, ast.FunctionDef) and function.__code__ not in found:
                found[function.__code__] = (node, function)
                inside = {**function.__globals__, **closure(function)}
                if isinstance(call.func, ast.Attribute) and node.args.args:
                    inside[node.args.args[0].arg] = resolve(call.func.value, scope)
                inside |= _arguments(call, node, scope)
                found |= reached_functions(node.body, inside, depth + 1)
    return found


def _arguments(call: ast.Call, node: ast.FunctionDef, scope: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments under the function's parameter names, as far as they are variables."""
    names = [a.arg for a in node.args.args]
    names = names[1:] if isinstance(call.func, ast.Attribute) and names[:1] == ["self"] else names
    given = {n: scope.get(a.id) for n, a in zip(names, call.args) if isinstance(a, ast.Name)}
    given |= {k.arg: scope.get(k.value.id) for k in call.keywords if k.arg and isinstance(k.value, ast.Name)}
    return {n: v for n, v in given.items() if v is not None}


__all__ = ["RETURNED", "LiftedPass", "lift_pass", "reached_functions"]
