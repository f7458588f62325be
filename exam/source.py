"""A program's source, and the changes that plant a fault in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import libcst as cst
from libcst import matchers as m
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

_EVALUATION = re.compile(r"val|test|eval|dev|held|holdout|valid", re.IGNORECASE)


@dataclass(frozen=True)
class Planted:
    """A program with one fault in it."""

    source: str
    line: int  # of the change, in the planted source
    change: str  # for a reader: what was changed
    lines: int = 1  # that were added or changed, from `line` on


@dataclass(frozen=True)
class Variable:
    """A name of the program that held a value worth planting a fault in, and the last statement that assigns it."""

    name: str
    scope: str  # the function's qualified name; empty for the module
    kind: str  # tensor, array, series, frame, rows, sets, loader, dataset, model, optimizer, list
    shape: tuple[int, ...]
    type: str
    distinct: int | None
    range: tuple[float | None, float | None]
    columns: tuple[str, ...]
    sets: tuple[str, ...]
    statement: cst.SimpleStatementLine = field(repr=False)

    @property
    def evaluation(self) -> bool:
        """Whether its name says that it is not trained on."""
        return bool(_EVALUATION.search(self.name))


class Source:
    """A parsed program, with what its variables held when it ran."""

    def __init__(self, text: str, names: dict[str, Any] | None = None) -> None:
        """`names`: as `variables.py` writes them."""
        self._wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = self._wrapper.module
        self.text = text
        self.names = names or {}

    # What is there ---------------------------------------------------------------------------------------------------

    def find(self, *matchers: m.BaseMatcherNode) -> list[Any]:
        """All nodes that match one of them, in the order of the source."""
        found = [node for matcher in matchers for node in m.findall(self.module, matcher)]
        return sorted(found, key=self._start)

    def calls(self, *names: str) -> list[cst.Call]:
        """Calls of a function or method with one of these last names: `cross_entropy` finds F.cross_entropy(...)."""
        return [c for c in self.find(m.Call()) if called(c) in names]

    def method_calls(self, *names: str) -> list[cst.Call]:
        """Calls of a method with one of these names."""
        return [c for c in self.calls(*names) if isinstance(c.func, cst.Attribute)]

    def functions(self, *names: str) -> list[cst.FunctionDef]:
        """Definitions with one of these names; all of them without one."""
        return [f for f in self.find(m.FunctionDef()) if not names or f.name.value in names]

    @cached_property
    def variables(self) -> list[Variable]:
        """The variables that were seen in the run, each at its last plain assignment outside loops."""
        found: dict[tuple[str, str], Variable] = {}
        for statement in self.find(m.SimpleStatementLine()):
            scope = self.scope(statement)
            for name in _assigned(statement):
                seen = self.names.get(f"{scope}::{name}")
                if seen and not self.in_loop(statement):
                    found[scope, name] = _variable(name, scope, seen, statement)
        return list(found.values())

    def statement(self, node: cst.CSTNode) -> Any:
        """The simple statement line that a node is part of, or the compound statement whose head it is part of."""
        while not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            node = self._parents[node]
        return node

    def parent(self, node: cst.CSTNode) -> Any:
        """The node that contains this one."""
        return self._parents[node]

    def scope(self, node: cst.CSTNode) -> str:
        """The qualified name of the function that a node is in; empty at the module's level."""
        names: list[str] = []
        while node in self._parents:
            inside, node = node, self._parents[node]
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and inside is node.body:
                if isinstance(node, cst.FunctionDef) and names:
                    names.append("<locals>")
                names.append(node.name.value)
        return ".".join(reversed(names))

    def in_loop(self, node: cst.CSTNode) -> bool:
        """Whether a node is in the body of a for or while statement of its function."""
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
                return False
            if isinstance(node, (cst.For, cst.While)):
                return True
        return False

    def inside(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> Any:
        """The nearest enclosing node of one of these kinds, or None."""
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, kinds):
                return node
        return None

    def code(self, node: cst.CSTNode) -> str:
        """The source of a node."""
        return self.module.code_for_node(node).strip()

    def line(self, node: cst.CSTNode) -> int:
        """The line on which a node starts."""
        return int(self._positions[node].start.line)

    # Changes ---------------------------------------------------------------------------------------------------------

    def replaced(self, node: cst.CSTNode, by: str | cst.CSTNode) -> Planted:
        """An expression by another one."""
        new = cst.parse_expression(by) if isinstance(by, str) else by
        if isinstance(by, str) and isinstance(
            new, (cst.BinaryOperation, cst.Comparison, cst.IfExp, cst.BooleanOperation)
        ):
            new = new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return self._planted(
            self.module.deep_replace(node, new), self.line(node), f"{self.code(node)} -> {_short(self._code_of(new))}"
        )

    def removed(self, statement: cst.CSTNode) -> Planted:
        """Without a statement (`pass` in its place where its block would be empty)."""
        block = self._parents[statement]
        alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
        new = cst.parse_statement("pass")
        tree = self.module.deep_replace(statement, new) if alone else self.module.deep_remove(statement)
        return self._planted(tree, self.line(statement), f"without: {_short(self.code(statement))}")

    def before(self, statement: cst.CSTNode, text: str) -> Planted:
        """With lines in front of a statement, in its block."""
        return self._inserted(statement, text, 0)

    def after(self, statement: cst.CSTNode, text: str) -> Planted:
        """With lines behind a statement, in its block."""
        return self._inserted(statement, text, 1)

    def moved(self, statement: cst.CSTNode, to_before: cst.CSTNode) -> Planted:
        """With a statement in front of another one of the same block."""
        block = self._parents[statement]
        body = [s for s in block.body if s is not statement]
        body.insert(body.index(to_before), statement)
        line = min(self.line(statement), self.line(to_before))
        return self._planted(
            self.module.deep_replace(block, block.with_changes(body=body)),
            line,
            f"moved: {_short(self.code(statement))}",
        )

    def argument(self, call: cst.Call, name: str, value: str | None) -> Planted:
        """With a keyword argument set to an expression, or left out (None)."""
        args = [a for a in call.args if not (a.keyword and a.keyword.value == name)]
        if value is not None:
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            args.append(cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=equal))
        spread = [a.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) for a in args[:-1]]
        new = call.with_changes(args=[*spread, *(a.with_changes(comma=cst.MaybeSentinel.DEFAULT) for a in args[-1:])])
        return self._planted(
            self.module.deep_replace(call, new), self.line(call), f"{called(call)}({name}={value or 'left out'})"
        )

    def replaced_all(self, changes: Sequence[tuple[cst.CSTNode, str]], change: str) -> Planted:
        """Several expressions by other ones, none of them inside another."""
        new = {id(node): cst.parse_expression(f"({text})" if " " in text else text) for node, text in changes}
        tree = self.module.visit(_Replacing(new))
        return self._planted(tree, min(self.line(node) for node, _ in changes), change)

    def swapped(self, node: cst.CSTNode, new: cst.CSTNode, line: int, change: str) -> Planted:
        """With a node of the tree changed by the caller, who says on which line and how."""
        return self._planted(self.module.deep_replace(node, new), line, change)

    def many(self, changes: Sequence[tuple[cst.CSTNode, Any]], change: str) -> Planted:
        """With several nodes changed at once: by another node, a text, a function of the node, or left out (None)."""
        first = min(self.line(node) for node, _ in changes)
        return self._planted(self.module.visit(_Swap(changes)), first, change)

    # Helpers ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _parents(self) -> Any:
        return self._wrapper.resolve(ParentNodeProvider)

    @cached_property
    def _positions(self) -> Any:
        return self._wrapper.resolve(PositionProvider)

    def _start(self, node: cst.CSTNode) -> tuple[int, int]:
        start = self._positions[node].start
        return start.line, start.column

    def _inserted(self, statement: cst.CSTNode, text: str, behind: int) -> Planted:
        block = self._parents[statement]
        body = list(block.body)
        at = body.index(statement) + behind
        new = cst.parse_module(text + "\n").body
        tree = self.module.deep_replace(block, block.with_changes(body=[*body[:at], *new, *body[at:]]))
        line = self.line(statement) if not behind else self._positions[statement].end.line + 1
        return replace(self._planted(tree, line, f"added: {_short(text)}"), lines=text.count("\n") + 1)

    def _code_of(self, node: cst.CSTNode) -> str:
        return cst.Module([]).code_for_node(node)

    def _planted(self, tree: Any, line: int, change: str) -> Planted:
        return Planted(tree.code, line, change)


class _Swap(cst.CSTTransformer):
    """Changes nodes of a tree, each by itself."""

    def __init__(self, changes: Sequence[tuple[cst.CSTNode, Any]]) -> None:
        super().__init__()
        self._changes = {id(node): new for node, new in changes}

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        if id(original_node) not in self._changes:
            return updated_node
        new = self._changes[id(original_node)]
        if callable(new):
            return new(updated_node)
        if new is None:
            return cst.RemoveFromParent()
        return cst.parse_expression(new) if isinstance(new, str) else new


def called(call: cst.Call) -> str:
    """The last name of what is called; empty where it has none."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return call.func.value if isinstance(call.func, cst.Name) else ""


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The keyword argument of that name."""
    return next((a for a in call.args if a.keyword and a.keyword.value == name), None)


def number(node: cst.CSTNode | None) -> float | None:
    """The value of a literal number."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number(node.expression)
        return None if inner is None else -inner
    return float(node.evaluated_value) if isinstance(node, (cst.Float, cst.Integer)) else None


def _assigned(statement: cst.SimpleStatementLine) -> Iterator[str]:
    for small in statement.body:
        targets: Sequence[cst.BaseExpression] = ()
        if isinstance(small, cst.Assign):
            targets = [t.target for t in small.targets]
        elif isinstance(small, cst.AnnAssign) and small.value:
            targets = [small.target]
        for target in targets:
            elements = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
            yield from (e.value for e in elements if isinstance(e, cst.Name))


def _variable(name: str, scope: str, seen: dict[str, Any], statement: cst.SimpleStatementLine) -> Variable:
    return Variable(
        name=name,
        scope=scope,
        kind=seen["kind"],
        shape=tuple(seen.get("shape") or ()),
        type=seen.get("type", ""),
        distinct=seen.get("distinct"),
        range=tuple(seen.get("range") or (None, None)),
        columns=tuple(seen.get("columns") or ()),
        sets=tuple(seen.get("sets") or ()),
        statement=statement,
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 90 else text[:87] + "..."


Plant = Callable[[Source], Iterator[Planted]]


class _Replacing(cst.CSTTransformer):
    def __init__(self, new: dict[int, cst.BaseExpression]) -> None:
        super().__init__()
        self._new = new

    def on_leave(self, original_node: cst.CSTNode, updated_node: Any) -> Any:
        return self._new.get(id(original_node)) or super().on_leave(original_node, updated_node)
