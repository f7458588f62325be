"""Variables that a loop's evaluation accumulates into, found in its code and read after each pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.loops.found_loops import called_in, is_users_object
from trainwright.seams.loops.lifted_pass import LiftedPass, reached_functions
from trainwright.seams.source.places import show
from trainwright.seams.source.written import code_node, syntax_tree
from trainwright.stages.evaluation import Counter

_TRAINING = frozenset(["backward", "manual_backward"])
# A quotient is evaluated only if it does nothing but arithmetic on variables.
_ARITHMETIC = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Call, ast.operator,
               ast.unaryop, ast.expr_context)  # fmt: skip
_PLAIN_CALLS = ("len", "float", "int", "item", "double", "float", "sum", "max")


@dataclass
class Added:
    """A variable or attribute that code adds to."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    lines: set[tuple[str, int]] = field(default_factory=set)
    """The line that adds to it."""
    training: bool = False
    begun_at: Place | None = None
    used: bool = False
    """The pass also reads it other than to add to it."""
    begun_in_pass: bool = False
    """The pass itself initializes it before adding to it."""
    share: ast.expr | None = None
    scope: Callable[[], Mapping[str, Any]] = dict
    values: list[float | None] = field(default_factory=list)
    shares: list[float | None] = field(default_factory=list)

    def look(self) -> None:
        """Record its value and that of its quotient."""
        self.values.append(_number(self.read()))
        self.shares.append(_worth(self.share, self.scope()) if self.share is not None else None)

    @property
    def value(self) -> Any:
        """Its current value."""
        return self.read()


def find_counters(lifted: LiftedPass) -> list[Added]:
    """Everything that the pass adds to and that outlives the pass."""
    namespace = lifted.namespace
    found: dict[str, Added] = {}
    for node in _additions(lifted.statements):
        added = _of_target(_target(node), lifted)
        if added is not None:
            one = found.setdefault(added.name, added)
            one.lines |= {(lifted.loop.file, n) for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            one.training = one.training or _inside_training(node, lifted)
    for method, function in reached_functions(lifted.statements, namespace).values():
        for own in _of_method(method, function, lifted):
            found.setdefault(own.name, own).lines.update(own.lines)
    return list(found.values())


def _additions(statements: Sequence[ast.AST]) -> Iterator[ast.AugAssign | ast.Assign]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                yield node
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
                same = ast.unparse(node.targets[0])
                if isinstance(node.value.op, ast.Add) and same in (
                    ast.unparse(node.value.left),
                    ast.unparse(node.value.right),
                ):
                    yield node


def _target(node: ast.AugAssign | ast.Assign) -> ast.expr:
    return node.target if isinstance(node, ast.AugAssign) else node.targets[0]


def _of_target(target: ast.expr, lifted: LiftedPass) -> Added | None:
    namespace = lifted.namespace
    text = ast.unparse(target)
    if isinstance(target, ast.Name):
        name = target.id
        return Added(
            text,
            lambda: namespace.get(name),
            lambda value: namespace.__setitem__(name, value),
            begun_at=_begun(lifted, name),
            used=_is_used(lifted.statements, text),
            begun_in_pass=_is_begun(lifted.statements, name),
            share=_share(lifted.statements, text),
            scope=lambda: namespace,
        )
    if (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and isinstance(target.slice, ast.Constant)
    ):
        owner, key = target.value.id, target.slice.value
        return Added(
            text,
            lambda: _item(namespace.get(owner), key),
            lambda value: _put(namespace.get(owner), key, value),
            begun_at=_begun(lifted, owner),
            used=_is_used(lifted.statements, text),
            share=_share(lifted.statements, text),
            scope=lambda: namespace,
        )
    return None


def _of_method(node: ast.FunctionDef, function: FunctionType, lifted: LiftedPass) -> Iterator[Added]:
    """The attributes of the script's own objects that one of their methods adds to."""
    if not node.args.args:
        return
    own = node.args.args[0].arg
    for addition in _additions(node.body):
        target = _target(addition)
        if not isinstance(target, ast.Attribute) or getattr(target.value, "id", "") != own:
            continue
        for name, value in list(lifted.namespace.items()):
            if isinstance(value, type) or not is_users_object(value):
                continue
            if getattr(type(value), node.name, None) is not function:
                continue
            file = function.__code__.co_filename
            yield _attribute(
                name,
                value,
                target.attr,
                lifted,
                {(file, n) for n in range(addition.lineno, (addition.end_lineno or addition.lineno) + 1)},
            )


def _attribute(name: str, owner: Any, attribute: str, lifted: LiftedPass, lines: set[tuple[str, int]]) -> Added:
    share, scope = None, {"self": owner}
    for kind in type(owner).__mro__:
        for method in vars(kind).values():
            if isinstance(method, FunctionType) and share is None:
                tree = _node_of(method)
                share = _share([tree], f"self.{attribute}") if tree is not None else None
                scope = {**method.__globals__, "self": owner}
    return Added(
        f"{name}.{attribute}",
        lambda: getattr(owner, attribute, None),
        lambda value: setattr(owner, attribute, value),
        lines=lines,
        training=_names_in_training(name, lifted),
        used=True,
        share=share,
        scope=lambda: scope,
        begun_at=_begun(lifted, name),
    )


def _node_of(function: FunctionType) -> ast.AST | None:
    return code_node(function.__code__)


def _names_in_training(name: str, lifted: LiftedPass) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(lifted.training.node))


def _inside_training(node: ast.AST, lifted: LiftedPass) -> bool:
    """Whether a statement is part of the training step: directly in the training loop, not in a nested loop."""
    if not any(n is node for n in ast.walk(lifted.training.node)):
        return False
    for inner in ast.walk(lifted.training.node):
        if isinstance(inner, (ast.For, ast.While)) and inner is not lifted.training.node:
            if any(n is node for n in ast.walk(inner)) and not called_in(inner.body, lifted.namespace, _TRAINING):
                return False
    return True


def _begun(lifted: LiftedPass, name: str) -> Place | None:
    """The last line before the loop that assigns to a name."""
    from trainwright.seams.loops.found_loops import own_nodes

    for owner in (code_node(lifted.loop.frame.f_code), syntax_tree(lifted.loop.file)):
        inside = isinstance(owner, ast.Module) and lifted.loop.frame.f_code.co_name != "<module>"
        lines = [
            n.lineno
            for n in (own_nodes(owner) if owner is not None else ())
            if isinstance(n, (ast.Assign, ast.AnnAssign))
            and (inside or n.lineno < lifted.loop.line)
            and any(isinstance(t, ast.Name) and t.id == name and isinstance(t.ctx, ast.Store) for t in ast.walk(n))
        ]
        if lines:
            return Place(show(lifted.loop.file), max(lines))
    return None


def _is_begun(statements: Sequence[ast.AST], name: str) -> bool:
    """Whether a statement of the pass unconditionally assigns a variable: `a = b = 0`."""
    added = {id(a) for a in _additions(statements)}
    return any(
        isinstance(s, (ast.Assign, ast.AnnAssign))
        and id(s) not in added
        and any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(s))
        for s in statements
    )


def _is_used(statements: Sequence[ast.AST], text: str) -> bool:
    """Whether statements read a variable other than to add to it."""
    own = {id(n) for a in _additions(statements) if ast.unparse(_target(a)) == text for n in ast.walk(a)}
    return any(
        isinstance(n, (ast.Name, ast.Subscript))
        and isinstance(n.ctx, ast.Load)
        and id(n) not in own
        and ast.unparse(n) == text
        for s in statements
        for n in ast.walk(s)
    )


def _share(statements: Sequence[ast.AST], text: str) -> ast.expr | None:
    """The first quotient whose dividend contains a variable."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                parts = [ast.unparse(n) for n in ast.walk(node.left) if isinstance(n, ast.expr)]
                if text in parts and all(isinstance(n, _ARITHMETIC) for n in ast.walk(node)):
                    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
                    if all(getattr(f, "id", getattr(f, "attr", "")) in _PLAIN_CALLS for f in calls):
                        return node
    return None


def _worth(share: ast.expr, scope: Mapping[str, Any]) -> float | None:
    try:
        return _number(eval(compile(ast.Expression(share), "<share>", "eval"), dict(scope)))
    except Exception:  # a name that the pass has not bound, a division by zero
        return None


def _item(owner: Any, key: Any) -> Any:
    return owner.get(key) if isinstance(owner, dict) else None


def _put(owner: Any, key: Any, value: Any) -> None:
    if isinstance(owner, dict):
        owner[key] = value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, list, dict)):
        return None
    try:
        return float(value)
    except Exception:  # not a number: a user's object, a tensor with several values
        return None


def as_facts(counters: Sequence[Added], measured: set[tuple[str, int]]) -> tuple[Counter, ...]:
    """Facts about the counters that accumulate results derived from model outputs.

    Args:
        measured: the lines on which comparisons and losses became numbers.
    """
    found = []
    for one in counters:
        if len(one.values) < 3 or None in one.values[1:3] or not one.used or not one.lines & measured:
            continue
        if one.begun_in_pass:  # two passes over newly drawn rows may give different totals
            one.values[0] = None
        once, twice = (float(v or 0.0) for v in one.values[1:3])
        # If it had no value before the first pass, each pass initializes it.
        start = one.values[0] if one.values[0] is not None else once
        file, line = min(one.lines & measured)
        found.append(
            Counter(
                name=one.name,
                start=start,
                once=once,
                twice=twice,
                training=one.training,
                added_at=Place(show(file), line),
                begun_at=one.begun_at,
                share=ast.unparse(one.share) if one.share is not None else "",
                share_once=one.shares[1],
                share_twice=one.shares[2],
            )
        )
    return tuple(found)
