"""Edits to Python source that leave everything else unchanged."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from trainwright.core import Edit, RemoveKeyword, RenameFunction, RenameKeyword, RenameName, SetKeyword
from trainwright.seams.source.renaming import rename_in_text

_OfCall = RemoveKeyword | RenameKeyword | SetKeyword
# Brackets around an argument, which are no part of its node.
_CLOSING = re.compile(rb"(?:\s*\))*")
# Behind an argument: a comma, and the rest of its line.
_COMMA = re.compile(rb"\s*,[^\n]*")


def apply(source: str, edits: Sequence[Edit]) -> str | None:
    """The edited source, or None if one of the edits finds nothing to change.

    The last line is edited first: an edit moves the lines below it, and each names a line of the source as it was.
    """
    for edit in sorted(edits, key=lambda e: e.line, reverse=True):
        if isinstance(edit, RenameName):
            after = rename_in_text(source, edit.line, edit.old, edit.new, of_object=edit.of_object)
        else:
            after = _edited(source, edit)
        if after is None:
            return None
        source = after
    return source


def _edited(source: str, edit: _OfCall | RenameFunction) -> str | None:
    try:
        nodes = list(ast.walk(ast.parse(source)))
        text = source.encode()
        if isinstance(edit, RenameFunction):
            found = [n for n in nodes if isinstance(n, ast.FunctionDef) and (n.lineno, n.name) == (edit.line, edit.old)]
            spans = [(text.index(edit.old.encode(), _span(text, n)[0]), len(edit.old.encode())) for n in found[:1]]
            change = next(((at, at + size, edit.new) for at, size in spans), None)
        else:
            spanning = [n for n in nodes if isinstance(n, ast.Call) and n.lineno <= edit.line <= (n.end_lineno or 0)]
            fitting = [n for n in spanning if _fits(n, edit)]
            call = min(fitting, key=_order, default=None)
            change = _change(text, call, edit) if call is not None else None
        if change is None:
            return None
        start, end, new = change
        after = (text[:start] + new.encode() + text[end:]).decode()
        ast.parse(after)
    except (SyntaxError, ValueError):
        return None
    return after


def _order(call: ast.Call) -> tuple[int, int, int, int, int]:
    """The call of the fewest lines comes first, and of several the first one."""
    end, column = call.end_lineno or 0, call.end_col_offset or 0
    return end - call.lineno, call.lineno, call.col_offset, -end, -column


def _span(text: bytes, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
    """Where a node begins and ends."""
    starts = [0, *(found.end() for found in re.finditer(rb"\n", text))]
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column


def _fits(call: ast.Call, edit: _OfCall) -> bool:
    if isinstance(edit, SetKeyword) and edit.function:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        return name == edit.function or (edit.function[0].isupper() and name.endswith(edit.function))
    return any(k.arg == (edit.old if isinstance(edit, RenameKeyword) else edit.name) for k in call.keywords)


def _change(text: bytes, call: ast.Call, edit: _OfCall) -> tuple[int, int, str]:
    """What is replaced: from where, to where, and by what."""
    name = edit.old if isinstance(edit, RenameKeyword) else edit.name
    keyword = next((k for k in call.keywords if k.arg == name), None)
    inside = _span(text, call)[1] - 1
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    spans = sorted(_span(text, argument) for argument in arguments)
    ends = [_CLOSING.match(text, end, inside).end() for _, end in spans]  # type: ignore[union-attr]
    if isinstance(edit, SetKeyword):
        if keyword is not None:
            return *_span(text, keyword.value), edit.value
        at = edit.position
        if at is not None and at < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: at + 1]):
            return *_span(text, call.args[at]), edit.value
        return _appended(text, spans, ends, inside, f"{edit.name}={edit.value}")
    assert keyword is not None  # the call was chosen because it has this keyword
    start = _span(text, keyword)[0]
    if isinstance(edit, RenameKeyword):
        return start, start + len(name.encode()), edit.new
    at = [first for first, _ in spans].index(start)
    if at + 1 < len(spans):
        return start, spans[at + 1][0], ""
    return (ends[at - 1] if at else text.index(b"(", _span(text, call.func)[1]) + 1), ends[at] if at else inside, ""


def _appended(
    text: bytes, spans: Sequence[tuple[int, int]], ends: Sequence[int], inside: int, new: str
) -> tuple[int, int, str]:
    """Add a keyword in the style of the others: on a separate line, or after the last one."""
    if not spans:
        return inside, inside, new
    margin = text[text.rfind(b"\n", 0, spans[0][0]) + 1 : spans[0][0]]
    comma = _COMMA.match(text, ends[-1], inside)
    if comma and b"\n" in text[comma.end() : inside] and not margin.strip():
        return comma.end(), comma.end(), f"\n{margin.decode()}{new},"
    return ends[-1], ends[-1], f", {new}"
