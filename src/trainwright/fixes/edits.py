"""Edits to Python source that leave everything else as it was written, and what they come to as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from trainwright.core.finding import Finding
from trainwright.core.fix import Edit, RemoveKeyword, RenameKeyword, SetKeyword
from trainwright.core.report import Report


def with_diffs(report: Report) -> Report:
    """The report with the diff of every fix whose edits are known and fit the source."""
    return replace(report, findings=tuple(_with_diff(f) for f in report.findings))


def _with_diff(finding: Finding) -> Finding:
    fix = finding.fix
    if fix is None or not fix.edits or fix.diff is not None:
        return finding
    return replace(finding, fix=replace(fix, diff=diff(fix.edits)))


def diff(edits: Sequence[Edit], context: int = 1) -> str | None:
    """A unified diff of all edits, or None if any of them does not fit the source.

    Args:
        context: lines shown around a change.
    """
    files = edited(edits)
    parts: list[str] = []
    for file, (before, after) in (files or {}).items():
        old, new = (text.splitlines(keepends=True) for text in (before, after))
        for line in difflib.unified_diff(old, new, file, file, n=context):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts) or None


def edited(edits: Sequence[Edit]) -> dict[str, tuple[str, str]] | None:
    """The text of each file before and after its edits, or None if any of them does not fit."""
    files: dict[str, tuple[str, str]] = {}
    for file in dict.fromkeys(e.file for e in edits):
        try:
            before = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        after = apply(before, [e for e in edits if e.file == file])
        if after is None:
            return None
        files[file] = (before, after)
    return files


def fitting(report: Report) -> list[Finding]:
    """The findings whose edits can all be made together, the first ones before those that do not fit beside them."""
    chosen: list[Finding] = []
    for finding in report.findings:
        if finding.fix and finding.fix.edits and edited(edits_of([*chosen, finding])) is not None:
            chosen.append(finding)
    return chosen


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """All edits of their fixes, each once."""
    return list(dict.fromkeys(edit for f in findings if f.fix for edit in f.fix.edits))


def patch(report: Report) -> str:
    """One unified diff of all fixes that can be made together; empty if no edit is known."""
    return diff(edits_of(fitting(report)), context=3) or ""


def apply(source: str, edits: Sequence[Edit]) -> str | None:
    """The source with the edits made, or None if one of them finds nothing to change.

    The last line is edited first: an edit moves the lines below it, and each names a line of the source as it was.
    """
    for edit in sorted(edits, key=lambda e: e.line, reverse=True):
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


def _target(wrapper: MetadataWrapper, edit: Edit) -> tuple[int, int, int, int] | None:
    """The position of the innermost call that spans the edit's line and that the edit fits."""
    finder = _Finder(edit)
    wrapper.visit(finder)
    return finder.best


def _fits(call: cst.Call, edit: Edit) -> bool:
    if isinstance(edit, SetKeyword) and edit.function:
        name = _last_name(call.func)
        return name == edit.function or (edit.function[0].isupper() and name.endswith(edit.function))
    name = edit.old if isinstance(edit, RenameKeyword) else edit.name
    return any(a.keyword is not None and a.keyword.value == name for a in call.args)


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, edit: Edit) -> None:
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

    def __init__(self, edit: Edit, target: tuple[int, int, int, int] | None) -> None:
        super().__init__()
        self.edit = edit
        self.target = target
        self.done = False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        span = self.get_metadata(PositionProvider, original_node)
        if (span.start.line, span.start.column, span.end.line, span.end.column) != self.target:
            return updated_node
        self.done = True
        return updated_node.with_changes(args=_edited(updated_node, self.edit))


def _edited(call: cst.Call, edit: Edit) -> list[cst.Arg]:
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
    """Whether the argument at a position is given there, without its name."""
    if position is None or len(arguments) <= position:
        return False
    return all(a.keyword is None and not a.star for a in arguments[: position + 1])


def _appended(call: cst.Call, name: str, value: cst.BaseExpression) -> list[cst.Arg]:
    """One keyword more, laid out as the others are: on a line of its own, or behind the last."""
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
