"""Edits to Python source that leave everything else unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from trainwright.core.fix import Edit, RemoveKeyword, RenameFunction, RenameKeyword, RenameName, SetKeyword
from trainwright.seams.source.renaming import renamed

_Edit = RemoveKeyword | RenameFunction | RenameKeyword | SetKeyword


def apply(source: str, edits: Sequence[Edit]) -> str | None:
    """The edited source, or None if one of the edits finds nothing to change.

    The last line is edited first: an edit moves the lines below it, and each names a line of the source as it was.
    """
    for edit in sorted(edits, key=lambda e: e.line, reverse=True):
        if isinstance(edit, RenameName):
            after = renamed(source, edit.line, edit.old, edit.new, of_object=edit.of_object)
            if after is None:
                return None
            source = after
            continue
        try:
            wrapper = MetadataWrapper(cst.parse_module(source))
        except cst.ParserSyntaxError:
            return None
        editor = _Editor(edit, _target(wrapper, edit))
        source_after = wrapper.visit(editor).code
        if not editor.done:
            return None
        source = source_after
    return source


def _target(wrapper: MetadataWrapper, edit: _Edit) -> tuple[int, int, int, int] | None:
    """The position of the innermost call that spans the edit's line and that the edit fits."""
    finder = _Finder(edit)
    wrapper.visit(finder)
    return finder.best


def _fits(call: cst.Call, edit: _Edit) -> bool:
    if isinstance(edit, SetKeyword) and edit.function:
        name = _last_name(call.func)
        return name == edit.function or (edit.function[0].isupper() and name.endswith(edit.function))
    if isinstance(edit, RenameFunction):
        return False
    name = edit.old if isinstance(edit, RenameKeyword) else edit.name
    return any(a.keyword is not None and a.keyword.value == name for a in call.args)


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, edit: _Edit) -> None:
        super().__init__()
        self.edit = edit
        self.best: tuple[int, int, int, int] | None = None

    def visit_Call(self, node: cst.Call) -> None:
        span = self.get_metadata(PositionProvider, node)
        at = (span.start.line, span.start.column, span.end.line, span.end.column)
        inner = self.best is None or at[2] - at[0] < self.best[2] - self.best[0]
        if at[0] <= self.edit.line <= at[2] and _fits(node, self.edit) and inner:
            self.best = at


class _Editor(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, edit: _Edit, target: tuple[int, int, int, int] | None) -> None:
        super().__init__()
        self.edit = edit
        self.target = target
        self.done = False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        span = self.get_metadata(PositionProvider, original_node)
        if (span.start.line, span.start.column, span.end.line, span.end.column) != self.target:
            return updated_node
        assert not isinstance(self.edit, RenameFunction)  # it fits no call
        self.done = True
        return updated_node.with_changes(args=_edited(updated_node, self.edit))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        at = self.get_metadata(PositionProvider, original_node.name).start.line
        if not isinstance(self.edit, RenameFunction) or (at, original_node.name.value) != (
            self.edit.line,
            self.edit.old,
        ):
            return updated_node
        self.done = True
        return updated_node.with_changes(name=cst.Name(self.edit.new))


def _edited(call: cst.Call, edit: RenameKeyword | SetKeyword | RemoveKeyword) -> list[cst.Arg]:
    arguments = list(call.args)
    name = edit.old if isinstance(edit, RenameKeyword) else edit.name
    at = next((i for i, a in enumerate(arguments) if a.keyword is not None and a.keyword.value == name), None)
    if isinstance(edit, RemoveKeyword):
        kept = [a for i, a in enumerate(arguments) if i != at]
        if kept and at == len(kept):  # the last one went: what stands before the bracket stays as it was
            kept[-1] = kept[-1].with_changes(comma=arguments[-1].comma)
        return kept
    if isinstance(edit, RenameKeyword):
        assert at is not None  # the call was chosen because it has this keyword
        arguments[at] = arguments[at].with_changes(keyword=cst.Name(edit.new))
        return arguments
    value = cst.parse_expression(edit.value)
    if at is None and _is_positional(arguments, edit.position):
        at = edit.position
    if at is not None:
        arguments[at] = arguments[at].with_changes(value=value)
        return arguments
    return _appended(call, edit.name, value)


def _is_positional(arguments: Sequence[cst.Arg], position: int | None) -> bool:
    """Whether the argument at a position is passed without its name."""
    if position is None or len(arguments) <= position:
        return False
    return all(a.keyword is None and not a.star for a in arguments[: position + 1])


def _appended(call: cst.Call, name: str, value: cst.BaseExpression) -> list[cst.Arg]:
    """Add a keyword in the style of the others: on a separate line, or after the last one."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Arg(value=value, keyword=cst.Name(name), equal=equal)
    if not call.args:
        return [new]
    last = call.args[-1]
    opening = call.whitespace_before_args
    if not (isinstance(last.comma, cst.Comma) and isinstance(opening, cst.ParenthesizedWhitespace)):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        return [*call.args[:-1], last.with_changes(comma=comma), new.with_changes(comma=last.comma)]
    line = opening.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
    before = last.with_changes(comma=cst.Comma(whitespace_after=line))
    return [*call.args[:-1], before, new.with_changes(comma=last.comma)]
